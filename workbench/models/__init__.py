"""Models: where they come from (registry, no torch), how prompts render (templates), and loading (policy)."""

from workbench.models.registry import MODELS, ModelCard, ModelSource, SourceKind, resolve

__all__ = ["MODELS", "ModelCard", "ModelSource", "SourceKind", "resolve"]
