"""Work in a forked child process."""

import os
import signal
import threading
import traceback
import warnings


def ends_well_in_a_fork(work, seconds=30):
    """Whether `work` finishes in a child process, without an error and in time."""
    with warnings.catch_warnings():  # Python 3.12 and later warn of what is tested here
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    late = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
    late.start()
    try:
        return os.waitpid(child, 0)[1] == 0
    finally:
        late.cancel()
