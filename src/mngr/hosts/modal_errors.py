"""What Modal's SDK raises, in our words. The SDK is an extra: it is imported where it is needed, and only there."""

from __future__ import annotations

from mngr.errors import HostUnreachable, MngrError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

LOST = 255  # exit code of a command whose connection is gone, as ssh has it
_LOGIN = "modal token new, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
_GONE = "it was terminated, or has reached the end of its time: mngr start tells what is left of it"


class SandboxGone(HostUnreachable):
    """Modal answers, and says that the sandbox does not run any more."""


def sdk() -> ModuleType:
    try:
        import modal
    except ImportError as error:
        text = f"hosts on Modal need its SDK, which cannot be imported: {error}"
        raise MngrError(text, "install it beside mngr: pip install 'mngr[modal]'") from None
    return modal


def gone(sandbox: str) -> SandboxGone:
    return SandboxGone(f"the sandbox {sandbox} has ended", _GONE)


def explain(error: Exception, sandbox: str = "") -> MngrError:
    """`sandbox`: the one that was meant, if it was one."""
    if isinstance(error, MngrError):
        return error
    import modal.exception as raised

    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, raised.AuthError):
        return HostUnreachable(f"Modal does not let you in: {text.split('. ')[0].rstrip('.')}", _LOGIN)
    if sandbox and isinstance(error, raised.NotFoundError | raised.ConflictError | raised.SandboxTimeoutError):
        return gone(sandbox)
    if isinstance(error, raised.ImageBuildError):
        return MngrError(f"the image could not be built: {_last_line(error)}", "see its log on Modal")
    if isinstance(error, raised.InvalidError | raised.NotFoundError | raised.AlreadyExistsError):
        return UsageError(f"Modal: {text}")
    unreachable = (
        *(raised.ConnectionError, raised.ServiceError, raised.InternalError, raised.TimeoutError, raised.ClientClosed),
        *(OSError, TimeoutError),
    )
    if isinstance(error, unreachable):
        return HostUnreachable(f"Modal cannot be reached: {text}")
    return MngrError(f"Modal: {type(error).__name__}: {text}")


def _last_line(error: Exception) -> str:
    return [line.strip() for line in str(error).splitlines() if line.strip()][-1]
