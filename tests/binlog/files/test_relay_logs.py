"""Relay logs as replicas have written them: their own events among those of the source.

MySQL 9.7's has checksums, and what its source wrote has none.
"""

import json
import zlib
from base64 import b85decode
from pathlib import Path

import pytest

from tests.binlog.binlog_command import mtsd_binlog

MYSQL = (
    "c-s4yl$rNs4M#RV4+8^3H4xVWu>%7OgQcFio{6pz18G2*ftP^;#9#qJ28Lt?7AX#h3=<G@adByBF$kG3aA`0wFs5~7"
    "%Ydv_23ai+#Pfjo0Nf~ZzVI}#N!&m}2P&ulHWmbc?#{_i*E0YCL))lB55T_QM)Cy%S-t=nLxL|Dye~^-gY<yir2#i)"
    "7B**s)G30T=n2G+!SakT96KMsd@A^HsT<QD5TB6&VG~3Jl)mpGq-dJRwjv;j5$s4NkU{Z4>;zQ7!N84B4h<|u1%?H#"
    "AO;(AaY+ixe+CfbVN78V<b<jf`p+Q3kiy^`<mwpWs^H=n;^^cU?5dE0;?8bHtnP%lj|ttuk_*7@Jb~g)P<(KKRd6GM"
    "nxH$m5bhLafH@QBNFSgZ^-44{QxrV?LKFgmJbfL5A{D${BXtzY6v7;XoIM<aG%PhW;r{Rj;!ubK(fz>;b3V-dFoAcA"
    "!2bBd#)#q*XCR)zgdE~PAdAN*K*uvUxw?D$fm0SplK~K)09#iDjWVET8A}+LnE9DhfC0(~Wc~RMwo(qHUKfbJBB>Vy"
    "hBecFaKd0r1cy6g5=gNCNU<~!3os*xG)gE$Gh+<}SgvA%`5q=vx)>4)a;Tx;1H{Xj(LzBDPbhFQBH|KDa9n35Dmdgp"
    ">TN*f3=4X2z{3MfB}0P+LM5YwjviPq4^rr`fH>-){L2a{{2-txH7BtWl68#%J9)gI"
)
MARIADB = (
    "c-s4yl$rNu4M#RV4+8_kA0TF6WMFV$U|}#c&@(jDGqlk4O)SbxbaB!(&`wEBGBheR)Xm9HXTSl3EqEC?7=##DfIx_W"
    ";Ryqa6bDe4gM)(!NO5s-L6pH6bO$WLEDXFr=Kx*6n0k7@IarJvNa#QnC;<Hq0l<&}`c%&V1PpDX4n6n{3MX!)aAF`U"
    "oIu75sc_n0x8eoJ(ThQTmjz))gu<`alBa+q7lI@;fY=o*$%`I<ojRwUgA&>zkUA|O&IhXFU_dg7K@&n*eSGK$Qpp5T"
    "83@D&z$)3Hs(>6R2m{Dc2m!I!n2SqNSacb5fyz=CoP%5)LtGVH977zP9D`jIQg#Z|OQKl)3Tz+~rqx&HtQLe@T?ND`"
    "U`6Z*h01uWZsdfif;s`{03V?JdL<f}DGHu`AqoLOp1zJjkqX|fkva-x3So{x&K{0I8kU-xYQH9}LUCgs6UdFsNN(hT"
    "P!2XZpFt{xVX5{z*o{Kaz+p^bU@T!^V&-S!WMDeDUSlUntvE=nJ`k%hBdcX%{sRhs#>77$BN&sq6IsrHlna2A%Y)()"
    "tQ?jG6-~OiQKOI<<VF@uH*Q&W)f&Z($Cz=t@x^<UOCYrpAhmX&q{o8lMz|xvR5H}95Gr|POwA`0Co6+>b3@%z@y+)f"
    "NSX!YFl`{_V}%rN5KxqwlUNB!pvG^Of6@j3%xa`!"
)
UUID = "5c08b9e3-e9e5-11f1-a546-02fc00000001"


def written(recorded: str, folder: Path) -> Path:
    path = folder / "relay.000002"
    path.write_bytes(zlib.decompress(b85decode(recorded)))
    return path


@pytest.mark.parametrize(
    ("recorded", "gtids", "ends"),
    [
        (MYSQL, [f"{UUID}:{number}" for number in range(1, 5)], [533, 733, 995, 1281]),
        (MARIADB, [f"0-11-{number}" for number in range(1, 5)], [744, 908, 1072, 1251]),
    ],
    ids=["MySQL", "MariaDB"],
)
def test_the_groups_are_those_of_the_source(
    recorded: str,
    gtids: list[str],
    ends: list[int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert mtsd_binlog("--json", written(recorded, tmp_path)) == 0
    groups = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [group["gtid"] for group in groups] == gtids
    assert [(group["file"], group["pos"]) for group in groups] == [
        ("relay.000002", end) for end in ends
    ]
    assert [group["databases"] for group in groups] == [["d"]] * 4
    for place in (["--gtid", gtids[2]], ["--position", f"relay.000002:{ends[2]}"]):
        assert mtsd_binlog("--json", *place, written(recorded, tmp_path)) == 0
        assert json.loads(capsys.readouterr().out) == groups[2] | {"number": None}
    assert mtsd_binlog("--rows", written(recorded, tmp_path)) == 0
    assert "update d.t (@1 = " in capsys.readouterr().out
