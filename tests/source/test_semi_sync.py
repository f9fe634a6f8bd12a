"""What a source is told of what is applied, and when this replica withdraws."""

from mtsd.model.group import Group, GroupKind, PositionReached
from mtsd.model.position import Position
from mtsd.source.semi_sync import SemiSync, Turn

