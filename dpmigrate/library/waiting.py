"""What shows something to somebody, or waits for a key, a line or a debugger's command."""

from __future__ import annotations

#: by their full names
WAITING = frozenset(
    {"builtins.input", "builtins.breakpoint", "code.interact", "IPython.embed", "getpass.getpass"}
    | {f"click.{n}" for n in ("confirm", "prompt", "pause")}
    | {f"{n}.set_trace" for n in ("pdb", "ipdb", "pudb", "IPython.core.debugger")}
    | {f"matplotlib.pyplot.{n}" for n in ("show", "pause", "waitforbuttonpress", "ginput")}
    | {
        f"cv2.{n}"
        for n in ("imshow", "waitKey", "waitKeyEx", "namedWindow", "destroyAllWindows", "destroyWindow")
    }
)
