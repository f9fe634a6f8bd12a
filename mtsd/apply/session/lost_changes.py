"""What an error means that shows that the target has lost changes, or the row that records them."""

from mtsd.apply.session.retry import ROW_GONE
from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError


def lost_in_cascade(error: ServerError) -> ServerError:
    """Return what an error of a transaction that was guarded means."""
    if error.number != ER.SP_DOES_NOT_EXIST:
        return error
    lost = ServerError(
        ER.LOCK_DEADLOCK,
        "40001",
        "a deadlock inside the cascade of a foreign key, of which the target says nothing"
        " because innodb_native_foreign_keys is OFF",
    )
    lost.server = error.server
    return lost


def row_gone(error: ServerError) -> ServerError:
    """Return what it means that a worker's row was not found, by a statement or a row event."""
    gone = ServerError(
        ROW_GONE,
        "21000",
        "mtsd's own row for this worker in slave_worker_info is gone, so nothing would show that"
        " the transaction has been applied",
    )
    gone.remedy = (
        "If a view, trigger or routine of the target deletes it, drop that; if not, compare the"
        " servers, and say where to continue with mtsd position set"
    )
    gone.server = error.server
    return gone
