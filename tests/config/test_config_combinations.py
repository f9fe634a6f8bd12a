"""Keys that make no sense together: each refused or warned of, naming all that are part of it."""

import pytest

from mtsd.config import ConfigurationError, load
from tests.config.conftest import Write

REFUSED: dict[str, tuple[str, tuple[str, ...]]] = {
    "the same server over TCP": (
        '[source]\nhost = "db"\nport = 3306\n[target]\nhost = "db"\nport = 3306\n',
        ("target.host", "db:3306", "also the source"),
    ),
    "the same server by its defaults": (
        "[source]\nport = 3307\n",
        ("target.host", "127.0.0.1:3307", "also the source"),
    ),
    "the same server over its socket": (
        '[source]\nhost = ""\nunix_socket = "/s"\n[target]\nhost = ""\nunix_socket = "/s"\n',
        ("target.unix_socket", "/s", "also the source"),
    ),
    "the daemon's socket is the source's": (
        '[source]\nunix_socket = "/s"\n[status]\nsocket = "/s"\n',
        ("status.socket", '"/s"', "source.unix_socket"),
    ),
    "the daemon's socket is the target's": (
        '[target]\nunix_socket = "/s"\n[status]\nsocket = "/s"\n',
        ("status.socket", '"/s"', "target.unix_socket"),
    ),
    "batches that no queue can hold": (
        "[replica]\nbatch_bytes = 2000\npending_jobs_size_max = 1999\n",
        ("replica.batch_bytes", "found 2000", "replica.pending_jobs_size_max = 1999"),
    ),
    "batches too large for the queue by default": (
        "[replica]\nbatch_bytes = 1000000000\n",
        ("replica.batch_bytes", "found 1000000000", "replica.pending_jobs_size_max = 67108864"),
    ),
    "a queue too small for batches by default": (
        "[replica]\npending_jobs_size_max = 1024\n",
        ("replica.pending_jobs_size_max", "found 1024", "replica.batch_bytes = 4194304"),
    ),
    "idempotent rows by BINLOG": (
        '[replica]\nexec_mode = "idempotent"\n[target]\napply_mode = "binlog"\n',
        ("replica.exec_mode", "idempotent", 'target.apply_mode = "binlog"', '"sql"'),
    ),
    "one GTID for several branches": (
        'target.gtid = "preserve"\nreplica = {consistency="eventual", split_transactions="row"}',
        ("replica.split_transactions", '"preserve"', "cannot all have its GTID"),
    ),
    "eventual consistency by BINLOG": (
        '[replica]\nconsistency = "eventual"\n[target]\napply_mode = "binlog"\n',
        ("replica.consistency", "eventual", "idempotently", 'exec_mode = "strict"'),
    ),
    "the newer row where rows keep their order": (
        '[replica]\nnewer_row_column = "changed"\n',
        ("replica.newer_row_column", '"changed"', 'replica.consistency = "partition"', "eventual"),
    ),
    "the newer row by BINLOG": (
        '[target]\napply_mode="binlog"\n[replica]\nnewer_row_column="a"\nconsistency="eventual"\n',
        ("replica.newer_row_column", '"a"', 'target.apply_mode = "binlog"'),
    ),
    "the newer row, strictly": (
        '[replica]\nnewer_row_column = "changed"\nconsistency = "eventual"\nexec_mode = "strict"\n',
        ("replica.newer_row_column", '"changed"', 'replica.exec_mode = "strict"'),
    ),
    "bound databases where databases do not count": (
        '[replica]\nparallel_type = "logical_clock"\nbind = [["a", "b"]]\n',
        ("replica.bind", '[["a", "b"]]', 'replica.parallel_type = "logical_clock"'),
    ),
    "pinned databases where databases do not count": (
        '[replica]\nparallel_type = "commit_parent"\npin = [["a", 1]]\n',
        ("replica.pin", '[["a", 1]]', "goes by no names"),
    ),
    "weights where databases do not count": (
        '[replica]\nparallel_type = "commit_parent"\nweigh = [["a", 2]]\n',
        ("replica.weigh", '[["a", 2]]', "goes by no names"),
    ),
    "a database pinned to a worker that is not there": (
        '[replica]\npin = [["a", 1], ["b", 5]]\n',
        ("replica.pin", '"b" is pinned to worker 5, and there are 4', "parallel_workers"),
    ),
    "bound databases pinned apart": (
        '[replica]\nbind = [["a", "b"]]\npin = [["a", 1], ["b", 2]]\n',
        ("replica.pin", 'pinned apart: "a" to worker 1 and "b" to worker 2'),
    ),
    "a database renamed to the position schema": (
        '[filter]\nrewrite_db = [["a", "mtsd"]]\n',
        ("filter.rewrite_db", '["a", "mtsd"]', "target.schema"),
    ),
}

WARNED: dict[str, tuple[str, tuple[str, ...]]] = {
    "TLS over a socket": (
        '[target]\nunix_socket = "/s"\ntls = "verify_ca"\n',
        ('target.tls = "verify_ca"', "no effect", "target.unix_socket"),
    ),
    "authorities without verification": (
        '[source]\ntls_ca = "/ca"\ntls = "required"\n',
        ("source.tls_ca has no effect", '"required"', '"verify_ca"'),
    ),
    "a certificate without TLS": (
        '[source]\ntls_cert = "/c"\ntls_key = "/k"\ntls = "disabled"\n',
        ("source.tls_cert has no effect", "source.tls"),
    ),
    "a public key that is there and asked for": (
        '[source]\nserver_public_key = "/k"\nget_public_key = true\n',
        ("source.get_public_key has no effect", "source.server_public_key"),
    ),
    "batches longer than the queue": (
        "[replica]\nbatch_groups = 33\ncheckpoint_group = 32\n",
        ("replica.batch_groups = 33", "replica.checkpoint_group = 32"),
    ),
    "batches of what is not combined": (
        '[replica]\nbatch_groups = 2\n[target]\ngtid = "preserve"\n',
        ("replica.batch_groups = 2", "target.gtid", '"preserve"'),
    ),
    "bound queues without workers": (
        '[replica]\nbind = [["a"]]\nparallel_workers = 0\n',
        ("replica.bind has no effect", "replica.parallel_workers"),
    ),
    "weights without workers": (
        '[replica]\nweigh = [["a", 2]]\nparallel_workers = 0\n',
        ("replica.weigh has no effect", "replica.parallel_workers"),
    ),
    "pins without workers": (
        '[replica]\npin = [["a", 2]]\nparallel_workers = 0\n',
        ("replica.pin has no effect", "replica.parallel_workers"),
    ),
    "bound queues where rows keep no order": (
        '[replica]\nbind = [["a"]]\nconsistency = "eventual"\n',
        ("replica.bind has no effect", '"eventual"'),
    ),
    "weights where no worker is chosen by them": (
        '[replica]\nweigh = [["a", 2]]\nconsistency = "any_time"\n',
        ("replica.weigh has no effect", '"any_time"'),
    ),
    "splitting for one worker": (
        '[replica]\nsplit_transactions = "row"\nconsistency = "eventual"\nparallel_workers = 1\n',
        ("replica.split_transactions", '"row"', "replica.parallel_workers is 1"),
    ),
    "a partial history of what does not begin early": (
        '[source]\nallow_partial_history = true\nstart = "latest"\n',
        ("source.allow_partial_history", "source.start", '"latest"'),
    ),
    "databases to leave out among the only ones": (
        '[filter]\ndo_db = ["a"]\nignore_db = ["b"]\n',
        ("filter.ignore_db has no effect", "filter.do_db"),
    ),
    "a database by its name on the source": (
        '[filter]\ndo_db = ["a"]\nrewrite_db = [["a", "b"]]\n',
        ("filter.do_db has no effect", '"a"', "filter.rewrite_db"),
    ),
    "the position schema among what is replicated": (
        '[filter]\ndo_db = ["mtsd", "a"]\n',
        ("no effect", '"mtsd"', "target.schema"),
    ),
}

FINE = [
    '[source]\nunix_socket = "/s"\n[target]\nunix_socket = "/t"\n',
    '[source]\nunix_socket = "/s"\n[target]\nhost = "s"\n',
    '[source]\nhost = "db"\n[target]\nhost = "db"\n',
    "[replica]\nbatch_bytes = 2000\npending_jobs_size_max = 2000\n",
    "[replica]\ncheckpoint_group = 32\n",
    '[target]\ngtid = "preserve"\n',
    '[replica]\nbatch_groups = 1\n[target]\ngtid = "preserve"\n',
    '[source]\nallow_partial_history = true\nstart = "earliest"\n',
    "[source]\nallow_partial_history = true\n",
    '[source]\ntls_cert = "/c"\ntls_key = "/k"\n',
    '[replica]\nbind = [["a"]]\nparallel_workers = 1\n',
    '[replica]\nbind = [["a", "b"]]\npin = [["b", 1], ["a", 1]]\nweigh = [["a", 7]]\n',
    '[replica]\nexec_mode = "idempotent"\n',
    '[replica]\nexec_mode = "idempotent"\n[target]\napply_mode = "sql"\n',
    '[replica]\nconsistency = "eventual"\n',
    '[replica]\nconsistency = "eventual"\nnewer_row_column = "changed"\n',
    '[replica]\nconsistency = "eventual"\nexec_mode = "strict"\n[target]\napply_mode = "binlog"\n',
    '[filter]\ndo_db = ["b"]\nrewrite_db = [["a", "b"]]\n',
]


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused(name: str, write: Write) -> None:
    text, parts = REFUSED[name]
    with pytest.raises(ConfigurationError) as caught:
        load(write(text))
    (problem,) = caught.value.problems
    assert problem.key == parts[0]
    for part in parts:
        assert part in str(problem)
    assert problem.allowed.startswith("allowed is ")


@pytest.mark.parametrize("name", WARNED)
def test_what_has_no_effect_is_warned_of(name: str, write: Write) -> None:
    text, parts = WARNED[name]
    (warning,) = load(write(text)).warnings
    assert "\n" not in warning
    for part in parts:
        assert part in warning


@pytest.mark.parametrize("text", FINE)
def test_what_makes_sense_is_taken(text: str, write: Write) -> None:
    assert load(write(text)).warnings == ()


def test_all_combinations_are_reported_at_once(write: Write) -> None:
    endpoint = 'unix_socket = "/s"\nhost = "a"\npassword = "x"\npassword_file = "/f"\n'
    text = (
        f"[source]\n{endpoint}[target]\n{endpoint}tls_key = '/k'\n"
        '[status]\nsocket = "/s"\n[replica]\nbatch_bytes = 2000\npending_jobs_size_max = 1999\n'
    )
    with pytest.raises(ConfigurationError) as caught:
        load(write(text))
    assert [problem.key for problem in caught.value.problems] == [
        "source.unix_socket",
        "source.password_file",
        "target.unix_socket",
        "target.password_file",
        "target.tls_key",
        "replica.batch_bytes",
    ]
