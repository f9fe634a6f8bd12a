"""What the setting `target.gtid` comes to, for every target."""

from itertools import product
from typing import get_args

from mtsd.config.settings import GtidMode
from mtsd.model.outcome.reason import Refused
from mtsd.model.server import Flavour
from mtsd.replica.core.gtid_mode import (
    GTIDS_NOT_ALLOWED,
    MIRROR_LOGGED,
    ON_MARIADB,
    OTHER_GTIDS,
    WITHOUT_GTIDS,
    Gtids,
    decide_gtids,
)

_MYSQL, _MARIADB = Flavour.MYSQL, Flavour.MARIADB


def test_every_setting_on_every_target() -> None:
    modes: tuple[GtidMode, ...] = get_args(GtidMode)
    either = (True, False)
    for setting, gtid_mode, logged, allowed in product(modes, either, either, either):
        found = decide_gtids(
            setting, _MYSQL, _MYSQL, gtid_mode=gtid_mode, logged=logged, allowed=allowed
        )
        if setting in {"auto", "off"}:
            mirrors = setting == "auto" and gtid_mode and allowed and not logged
            assert found is (Gtids.MIRROR if mirrors else Gtids.OFF)
        elif not gtid_mode:
            assert isinstance(found, Refused)
            assert found.reason is WITHOUT_GTIDS
        elif not allowed:
            assert isinstance(found, Refused)
            assert found.reason is GTIDS_NOT_ALLOWED
        elif setting == "mirror" and logged:
            assert isinstance(found, Refused)
            assert found.reason is MIRROR_LOGGED
        else:
            assert found is Gtids(setting)
        assert found is not Gtids.MIRROR or not logged


def test_a_target_cannot_have_the_gtids_of_mariadb_or_another_family() -> None:
    modes: tuple[GtidMode, ...] = get_args(GtidMode)
    for setting, gtid_mode, logged in product(modes, (True, False), (True, False)):
        for families in ((_MYSQL, _MARIADB), (_MARIADB, _MYSQL), (_MARIADB, _MARIADB)):
            found = decide_gtids(setting, *families, gtid_mode=gtid_mode, logged=logged)
            if setting in {"auto", "off"}:
                assert found is Gtids.OFF
            else:
                assert isinstance(found, Refused)
                assert found.reason is (ON_MARIADB if families[1] is _MARIADB else OTHER_GTIDS)
