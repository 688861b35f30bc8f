"""Training: the losses in torch, and one GRPO step on one group."""

from workbench.training.objective import Objective, objective_loss
from workbench.training.step import GroupStepper, StepReport

__all__ = ["GroupStepper", "Objective", "StepReport", "objective_loss"]
