"""What calls and methods of Python, torch and their like do, as far as several facts ask for it: each list has one owner, who is asked or adds to it.

A list that only one module asks for stands there. Names are those of the libraries' documentation, given with each list.
"""

from __future__ import annotations

# ---------------------------------------------------------------------- containers (Python's list, set, dict, collections.deque, queue.Queue)
#: methods that put their last argument into a container
PUTS_ONE = frozenset({"append", "add", "appendleft", "insert", "setdefault", "put"})
#: methods that put in what their argument holds
PUTS_ALL = frozenset({"extend", "update"})
#: methods by which a container grows
GROWS = PUTS_ONE | PUTS_ALL
#: methods that change a container in any way
MUTATORS = GROWS | {"pop", "popitem", "remove", "discard", "clear", "popleft", "sort"}

# ---------------------------------------------------------------------- numbers and their text (Python's built-in functions)
#: functions that give a number as a number
NUMBERS = frozenset({"?.int", "?.float", "?.round", "?.abs", "?.min", "?.max"})
#: calls and methods that show a number, or keep it to be shown: print, str.format, logging, files, tqdm
SHOWING = frozenset({"print", "format", "info", "debug", "warning", "write", "set_description", "set_postfix", "set_postfix_str", "append"})
#: what shows the progress of a loop and gives what it is given: tqdm, rich, progressbar, fastprogress, alive_progress, pyprind
PROGRESS = frozenset(
    {*("tqdm", "tqdm_notebook", "notebook_tqdm", "track", "ProgressBar", "progressbar"), *("progress_bar", "master_bar", "alive_it", "prog_bar")}
)
#: classes of bars that are called with what they show: ``bar = ProgressBar(max_value=9)``, then ``for batch in bar(loader)``
CALLED_BARS = frozenset(f"progressbar.{module}{name}" for module in ("", "bar.") for name in ("ProgressBar", "DataTransferBar"))

# ---------------------------------------------------------------------- time and chance (time, datetime, timeit, random, numpy.random)
#: what each process asks for itself, at another time
CLOCKS = frozenset(
    {f"time.{n}{unit}" for n in ("time", "perf_counter", "monotonic", "process_time", "thread_time") for unit in ("", "_ns")}
    | {"time.clock", "timeit.default_timer", "datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow"}
)
#: what makes a stream of random numbers that can be seeded
SEEDED_STREAMS = frozenset({"random.Random", "numpy.random.RandomState", "numpy.random.default_rng", "numpy.random.Generator"})

# ---------------------------------------------------------------------- files (os.path, pathlib.Path)
#: functions that ask whether something is there
EXISTS = frozenset({"os.path.exists", "os.path.lexists", "os.path.isdir", "os.path.isfile"})
#: methods of a path that ask so
EXIST_METHODS = frozenset({"exists", "is_dir", "is_file"})

# ---------------------------------------------------------------------- tensors and modules alike (torch.Tensor, torch.nn.Module)
#: methods that move to a device
MOVES = frozenset({"to", "cuda", "cpu"})
#: methods that give another type of floating point
FLOATS = frozenset({"float", "double", "half", "bfloat16"})

# ---------------------------------------------------------------------- tensors (torch.Tensor, and functions of the same names)
#: methods that give a type of whole numbers
INTEGERS = frozenset({"long", "int"})
#: methods that lay the same elements out otherwise
LAYOUTS = frozenset({"contiguous", "view", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "t"})
#: what gives a value without its gradient
CUTS = frozenset({"detach", "data", "item", "numpy", "tolist"})
#: what is asked of a tensor that is nothing of its elements
FORM = frozenset({"shape", "size", "device", "dtype", "dim", "ndim", "numel", "type"})
#: functions that give data as a tensor
TO_TENSOR = frozenset({"torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor"})
#: functions that make a tensor of a size
MAKES = frozenset({"zeros", "ones", "full", "empty"})
#: methods that do so, with the type and device of another tensor
MAKES_ALIKE = frozenset({"new_zeros", "new_ones", "new_full", "new_empty"})
#: methods that repeat what is there
REPEATS = frozenset({"repeat", "tile", "repeat_interleave", "expand"})

#: methods and functions that compare elements
COMPARING = frozenset({"eq", "ne", "gt", "ge", "lt", "le"})

# ---------------------------------------------------------------------- modules (torch.nn.Module)
#: methods that give the modules inside one
INNER_MODULES = frozenset({"children", "named_children", "modules", "named_modules"})
#: methods that give its parameters
PARAMETERS = frozenset({"parameters", "named_parameters"})
#: methods that set how it works, and compute nothing
SETTINGS = frozenset({"train", "eval", "zero_grad", "requires_grad_"})
