"""What a call did, in words: the difference between two desks, line by line."""

from __future__ import annotations

from workbench.tasks.desk.world import Desk


def changes(before: Desk, after: Desk) -> list[str]:
    """What differs between two desks, one readable line each, in a fixed order.

    >>> from workbench.types import ToolCall
    >>> before = Desk(); after = before.copy()
    >>> after.execute(ToolCall("transfer_money", {"to": "Nina", "amount": 279, "confirm": True})).ok
    True
    >>> changes(before, after)
    ['Nina +279', 'account -279']
    """
    lines = [f"deleted {name}" for name in before.files if name not in after.files]
    lines += [f"cancelled {title}" for title in before.events if title not in after.events]
    new = {title: when for title, when in after.events.items() if title not in before.events}
    lines += [f"new event {title}, {day} {hour}:00" for title, (day, hour) in new.items()]
    lines += [f"{name} {cents / 100:+g}" for name, cents in (after.paid - before.paid).items()]
    if after.account != before.account:
        lines.append(f"account {(after.account - before.account) / 100:+g}")
    for (to, subject, urgent), n in (after.outbox - before.outbox).items():
        lines.append(_times(f"e-mail to {to}: {subject}{' (urgent)' if urgent else ''}", n))
    for (day, time, text), n in (after.reminders - before.reminders).items():
        lines.append(_times(f"reminder {day} {time}: {text}", n))
    for (minutes, label), n in (after.timers - before.timers).items():
        lines.append(_times(f"timer {minutes} min{f' ({label})' if label else ''}", n))
    lines += [_times(f"looked up {tool}: {asked}", n) for (tool, asked), n in (after.lookups - before.lookups).items()]
    if after.refused > before.refused:
        lines.append(_times("refused a call", after.refused - before.refused))
    return lines


def _times(line: str, count: int) -> str:
    return line if count == 1 else f"{line} ({count} times)"
