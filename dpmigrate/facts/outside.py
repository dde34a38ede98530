"""What a call does outside the program that one process should do alone: files, experiment trackers, people at the keyboard."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpmigrate.facts.names import Names, last
from dpmigrate.facts.nodes import children
from dpmigrate.library.file_changes import FILE_CHANGES
from dpmigrate.library.waiting import WAITING
from dpmigrate.spelt_paths import COMMANDS

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

TRACKERS = ("wandb.", "mlflow.", "comet_ml.", "neptune.", "clearml.", "swanlab.", "tensorboard_logger.", "sacred.observers.")
_FILE_FUNCTIONS = frozenset(
    FILE_CHANGES
    | {"shutil.make_archive"}
    | (COMMANDS - {"os.popen", "subprocess.check_output"})  # those are asked for what they print
    | {f"numpy.{n}" for n in ("save", "savez", "savez_compressed", "savetxt")}
    | {f"matplotlib.pyplot.{n}" for n in ("savefig", "imsave")}
    | {f"torch.{n}" for n in ("onnx.export", "jit.save", "export.save", "cuda.memory._dump_snapshot")}
    | {f"safetensors.torch.{n}" for n in ("save_file", "save_model")}
    | {"torchvision.utils.save_image", "torchvision.io.write_video", "torchvision.io.write_png", "torchvision.io.write_jpeg", "torchaudio.save"}
    | {"cv2.imwrite", "imageio.imwrite", "imageio.imsave", "imageio.mimsave", "skimage.io.imsave", "scipy.io.savemat", "scipy.io.wavfile.write"}
    | {"soundfile.write", "joblib.dump", "omegaconf.OmegaConf.save"}
)
_FILE_METHODS = frozenset(
    {"savefig", "to_csv", "to_json", "to_excel", "to_pickle", "to_parquet", "to_feather", "to_hdf", "write_text", "write_bytes", "write_image", "write_html"}
    | {"save_pretrained", "save_vocabulary", "to_json_file", "unlink", "rmdir", "save_image", "imwrite", "symlink_to", "hardlink_to"}
    | {"export_chrome_trace", "export_stacks", "export_memory_timeline"}
)
#: what sends files to a hub or a store (huggingface_hub, boto3)
_SENDING = frozenset({"upload_file", "upload_folder", "upload_large_folder", "upload_fileobj", "push_to_hub", "create_repo", "put_object"})
#: methods whose names other things have too, with what makes the objects that write files by them
_FILE_METHODS_OF = {
    "save": (
        "torch.jit.script",
        "torch.jit.trace",
        "torch.jit.freeze",
        "torch.jit.optimize_for_inference",
        "PIL.Image.new",
        "PIL.Image.fromarray",
        "PIL.Image.open",
    ),
}
#: methods of paths, whatever a path is made of: of other things they have other arguments
_METHODS_OF_PATHS = {"rename": 1, "replace": 1, "touch": 0, "chmod": 1}
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".ico", ".pdf", ".eps")
#: files that no disk has
_IN_MEMORY = ("io.BytesIO", "io.StringIO")
_WAITING = frozenset(n.replace("builtins.", "?.") for n in WAITING)

#: data sets of libraries that are fetched, and prepared, where they are made
_DATA_SETS = re.compile(
    r"(torch_geometric|torchtext)\.datasets\.[A-Z]|ogb\..*Dataset|sklearn\.datasets\.fetch_|(tensorflow\.)?keras\.datasets\.\w+\.load_data$"
)


def sends_files(roles: Roles, call: ast.Call) -> bool:
    """Whether the call sends files to a hub or a store, which would have them from every rank."""
    dotted = roles.names.dotted(call.func)
    return last(call.func) in _SENDING and (not dotted or dotted.startswith("huggingface_hub.")) and not any(True for _ in roles.values.targets(call))


def reports(roles: Roles, call: ast.Call) -> bool:
    """Whether the call is one of an experiment tracker's module, also where a variable, an attribute or a parameter has it: ``self._wandb.log(…)``."""
    if (dotted := roles.names.dotted(call.func)) and not dotted.startswith("?."):
        return dotted.startswith(TRACKERS)
    return any(v.kind == "ext" and v.qual.startswith(TRACKERS) for v in roles.values.eval(call.func))


def changes_files(roles: Roles, call: ast.Call) -> bool:
    """Whether the call writes, moves or removes a file by itself: not what it writes into memory."""
    if _in_memory(roles, call):
        return False
    if roles.names.dotted(call.func) in _FILE_FUNCTIONS:
        return True
    if not isinstance(call.func, ast.Attribute):
        return False
    if _METHODS_OF_PATHS.get(call.func.attr) == len(call.args) and not any(roles.values.targets(call)):
        named = {k.arg for k in call.keywords}
        return named <= {"mode", "exist_ok"} if call.func.attr == "touch" else not named
    makers = _FILE_METHODS_OF.get(call.func.attr, ())
    if call.func.attr in _FILE_METHODS or any(v.kind == "call" and v.qual in makers for v in roles.values.eval(call.func.value)):
        return True
    return call.func.attr == "save" and bool(call.args) and _is_picture(roles, call.args[0]) and not any(v.cls for v in roles.values.eval(call.func.value))


def _in_memory(roles: Roles, call: ast.Call) -> bool:
    """Whether the call is given a file that is in memory alone, which each rank has for itself: ``plt.savefig(buffer)`` with ``buffer = io.BytesIO()``."""
    given = (roles.values.eval(a) for a in (*call.args, *(k.value for k in call.keywords)))
    return any(found and all(v.kind == "call" and v.qual in _IN_MEMORY for v in found) for found in given)


def _is_picture(roles: Roles, path: ast.expr, depth: int = 6) -> bool:
    """Whether the path ends in the suffix of a picture, whatever comes before it: what is saved there by ``x.save(path)`` is a file, whoever made ``x``."""
    if isinstance(path, ast.Constant):
        return isinstance(path.value, str) and path.value.lower().endswith(_PICTURES)
    if isinstance(path, ast.JoinedStr):
        return bool(path.values) and _is_picture(roles, path.values[-1], depth)
    if isinstance(path, ast.BinOp):
        return _is_picture(roles, path.left if isinstance(path.op, ast.Mod) else path.right, depth)
    if isinstance(path, ast.Call):
        inner = path.func.value if isinstance(path.func, ast.Attribute) and path.func.attr == "format" else path.args[-1] if path.args else None
        return inner is not None and _is_picture(roles, inner, depth)
    if isinstance(path, ast.Name) and depth:
        bound = list(roles.names.bindings(roles.names.scope_of[path], path.id))
        given = [e for b in bound for e in roles.bound_to(b)]
        return bool(given) and all(e is not None and _is_picture(roles, e, depth - 1) for e in given)
    return False


def waits_for_somebody(names: Names, call: ast.Call) -> bool:
    """Whether the call shows something to somebody, or waits for a key, a line or a debugger's command."""
    return names.dotted(call.func) in _WAITING


def called(names: Names, node: ast.AST) -> Iterator[ast.Call]:
    """The calls that running the node makes: not those in the body of a ``lambda``, nor what ``functools.partial`` is made of."""
    todo = [node]
    while todo:
        n = todo.pop()
        if isinstance(n, ast.Call) and names.dotted(n.func) != "functools.partial":
            yield n
        todo += [n.args] if isinstance(n, ast.Lambda) else children(n)


def postponed(names: Names) -> list[ast.Lambda | ast.Call]:
    """The lambdas and partial calls that fetch files where they are called."""
    lambdas = [n for n in names.nodes if isinstance(n, ast.Lambda) and downloads(names, n.body)]
    return lambdas + [c for c in names.calls("partial") if names.dotted(c.func) == "functools.partial" and _downloads(names, c)]


def downloads(names: Names, node: ast.AST) -> bool:
    """Whether running the node may fetch files: a data set with ``download=``, pretrained weights, a hub."""
    return any(True for _ in downloading(names, node))


def downloading(names: Names, node: ast.AST) -> Iterator[ast.Call]:
    """The calls that running the node makes that may fetch files."""
    return (c for c in called(names, node) if _downloads(names, c))


def _downloads(names: Names, c: ast.Call) -> bool:
    for k in c.keywords:
        off = isinstance(k.value, ast.Constant) and not k.value.value
        if k.arg in ("download", "pretrained") and not off:
            return not _searched(names, c)
        if k.arg == "weights" and not off and names.dotted(c.func).startswith("torchvision."):
            return True
    dotted = names.dotted(c.func)
    if last(c.func) == "from_pretrained" or dotted.startswith(("torch.hub.load", "torch.utils.model_zoo.")) or dotted.endswith("datasets.load_dataset"):
        return True
    return _DATA_SETS.match(dotted) is not None or fetches(names, c)


def _searched(names: Names, call: ast.Call) -> bool:
    """``name in timm.list_models(pretrained=True)``: a list of names, no model."""
    above = names.parent.get(call)
    if not isinstance(above, ast.Compare) or call not in above.comparators:
        return False
    return isinstance(above.ops[above.comparators.index(call)], ast.In | ast.NotIn)


#: how functions of libraries that fetch files are called
_FETCHES = re.compile(r"(\w+_)?download(_\w+)?")


def fetches(names: Names, call: ast.Call) -> bool:
    """Whether the call fetches a file and does nothing else."""
    head, _, name = names.dotted(call.func).rpartition(".")
    if not head or head.startswith("?"):
        return False
    return head == "gdown" or name == "urlretrieve" or _FETCHES.fullmatch(name) is not None
