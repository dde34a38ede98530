"""More of the standard library: what computes, what differs between processes, what writes
(https://docs.python.org/3/library/).
"""

from __future__ import annotations

from dpmigrate.library import collections
from dpmigrate.library.builtins import ended, printed
from dpmigrate.library.effects import coupled, none, number, uniform
from dpmigrate.library.natures import CLOCK, OF_PROCESS
from dpmigrate.library.pure import computed
from dpmigrate.library.python_effects import (
    OPERATORS,
    fields,
    given_back,
    got,
    groups,
    kept,
    keyed,
    marked,
    members,
    operated,
    ordered,
    own_folder,
    own_folder_entered,
    own_object,
    own_path,
    pairs,
    part_of_path,
    popped,
    pushed,
    replaced,
    spread,
    tested,
    timed,
    unbound,
)
from dpmigrate.library.sites import Row, examples, methods, prefixed
from dpmigrate.library.stdlib import files_changed, opaque, per_rank

_DOC = "https://docs.python.org/3/library/"
#: methods of classes of Python that make something, and need no object
_MAKING = ("maketrans", "from_bytes", "fromhex")
_CLASSES = ("str", "list", "dict", "set", "int", "float", "bytes", "tuple", "frozenset")
_NUMBERS = """
acos acosh asin asinh atan atanh cbrt comb cosh erfc exp2 factorial gamma isclose isqrt lcm
ldexp lgamma modf perm remainder sinh ulp nextafter
"""
ROWS = (
    Row(prefixed("math.", _NUMBERS), number, ("math.atan(x.mean().item())",), _DOC),
    Row("math.fsum math.prod math.dist math.sumprod", coupled, source=_DOC),
    Row("math.frexp", computed, source=_DOC),
    Row(prefixed("operator.", " ".join(OPERATORS)), operated, examples("""
operator.add(x, y)
operator.mul(x.mean(), 2)
operator.truediv(x.sum(), x.size(0))
operator.sub(x, 1)
"""), _DOC),
    Row("operator.getitem", got, ("operator.getitem([x, y], 0)",), _DOC),
    Row(prefixed("operator.", "lt le eq ne ge gt not_ neg pos abs inv invert"), tested, examples("""
operator.lt(x, y)
operator.neg(x.mean(0))
"""), _DOC),
    Row(prefixed("operator.", "contains countOf indexOf is_ is_not truth index methodcaller"),
        computed, source=_DOC),
    Row("builtins.vars dataclasses.asdict", fields, source=_DOC),
    Row("inspect.getmembers", members, source=_DOC),
    Row("dataclasses.replace copy.replace", replaced, source=_DOC),
    Row("dataclasses.dataclass attr.s attr.attrs attr.define attrs.define attr.dataclass", marked,
        source=_DOC),
    Row("dataclasses.astuple dataclasses.fields dataclasses.is_dataclass dataclasses.make_dataclass"
        " attr.ib attr.field attrs.field", computed, source=_DOC),
    Row("heapq.heappush bisect.insort bisect.insort_left bisect.insort_right", pushed,
        source=_DOC),
    Row("heapq.heappop heapq.heapreplace heapq.heappushpop", popped, source=_DOC),
    Row("heapq.heapify", ordered, source=_DOC),
    Row("heapq.merge", collections.chained, source=_DOC),
    Row("itertools.groupby", groups, source=_DOC),
    Row("itertools.pairwise", pairs, source=_DOC),
    Row("itertools.takewhile itertools.dropwhile itertools.filterfalse itertools.compress", kept,
        source=_DOC),
    Row("itertools.starmap", spread, source=_DOC),
    Row("itertools.combinations_with_replacement", collections.product, source=_DOC),
    Row("functools.singledispatch functools.singledispatchmethod enum.unique enum.verify"
        " enum.member enum.nonmember typing.final typing.overload typing.no_type_check"
        " typing.runtime_checkable typing_extensions.override typing.override"
        " contextlib.ContextDecorator numba.njit numba.jit", collections.identity, source=_DOC),
    Row("functools.update_wrapper", collections.identity, source=_DOC),
    Row("functools.cmp_to_key enum.auto typing.NewType typing.get_type_hints typing.get_origin"
        " typing.get_args typing.TypedDict typing.Literal", computed, source=_DOC),
    Row("builtins.dict.fromkeys collections.OrderedDict.fromkeys", keyed, source=_DOC),
    Row("contextlib.closing", given_back, source=_DOC),
    Row("contextlib.chdir", lambda site: site.ref("context"), source=_DOC),
    Row("tempfile.mkdtemp tempfile.mktemp tempfile.mkstemp", own_path, source=_DOC),
    Row("tempfile.TemporaryDirectory", own_folder, source=_DOC),
    Row("<own_folder>.__enter__", own_folder_entered, source=_DOC),
    Row("<own_folder>.__exit__ <own_folder>.cleanup", none, source=_DOC),
    Row("tempfile.gettempdir tempfile.gettempprefix", uniform, source=_DOC),
    Row("""
os.getppid os.getloadavg os.times os.getrandom threading.get_ident
threading.get_native_id uuid.getnode uuid.uuid6 uuid.uuid7 socket.getfqdn
socket.gethostbyname resource.getrusage shutil.disk_usage
tracemalloc.get_traced_memory gc.get_count secrets.choice
secrets.randbelow secrets.randbits secrets.token_bytes secrets.token_urlsafe sys.getrefcount
numpy.random.bytes
""", per_rank(OF_PROCESS), source=_DOC),
    Row("""
time.asctime time.thread_time time.thread_time_ns time.monotonic_ns time.perf_counter_ns
time.process_time_ns pandas.Timestamp.now pandas.Timestamp.today pandas.Timestamp.utcnow arrow.now arrow.utcnow
pendulum.now
""", per_rank(CLOCK), source=_DOC),
    Row("""
socket.socket socket.create_connection threading.current_thread multiprocessing.current_process
multiprocessing.parent_process asyncio.get_event_loop psutil.Process tracemalloc.take_snapshot
""", own_object("an object of the process"), source=_DOC),
    Row("timeit.timeit timeit.repeat", timed, source=_DOC),
    Row("random.getstate", uniform, source=_DOC),
    Row("random.setstate", none, source=_DOC),
    Row("""
time.strptime time.mktime datetime.time datetime.timezone datetime.tzinfo
datetime.datetime.combine datetime.datetime.fromisoformat datetime.date.fromisoformat
datetime.date.fromtimestamp datetime.datetime.utcfromtimestamp uuid.uuid3 uuid.uuid5
pickle.dumps json.JSONEncoder json.JSONDecoder toml.dumps
types.MappingProxyType types.MethodType types.ModuleType os.fspath os.fsencode os.fsdecode
os.path.normcase os.path.isabs os.path.splitdrive os.path.expandvars os.path.commonpath
os.path.samefile glob.escape gzip.compress gzip.decompress
bz2.compress bz2.decompress lzma.compress lzma.decompress pprint.pformat pprint.saferepr
pprint.PrettyPrinter io.TextIOWrapper io.BufferedReader urllib.request.Request
http.client.HTTPResponse
copyreg.pickle traceback.format_exception traceback.format_tb traceback.format_list
traceback.extract_stack traceback.extract_tb traceback.format_stack threading.local weakref.ref
weakref.proxy weakref.WeakValueDictionary weakref.WeakKeyDictionary ctypes.c_int
linecache.getline warnings.formatwarning logging.makeLogRecord inspect.currentframe
inspect.getfullargspec inspect.getfile inspect.getdoc inspect.getmodule inspect.stack
inspect.ismethod inspect.isgenerator inspect.iscoroutinefunction inspect.isabstract
inspect.Parameter inspect.getsourcefile inspect.getsourcelines sys.gettrace sys.exc_clear
sys.stderr.isatty sys.stdout.isatty sys.stdin.isatty
sys.stdin.readline sys.stdin.read sys.stdout.fileno
sys.getdefaultencoding sys.getrecursionlimit sys.intern sys.getwindowsversion os.getuid os.getgid
os.geteuid os.get_terminal_size shutil.get_terminal_size os.getenvb os.environ.copy
os.environ.items os.environ.keys os.environ.values os.sched_getaffinity os.umask
multiprocessing.get_context
multiprocessing.get_start_method multiprocessing.active_children signal.getsignal signal.alarm
resource.getrlimit faulthandler.is_enabled importlib.reload importlib.util.spec_from_file_location
importlib.util.module_from_spec zipfile.is_zipfile tarfile.is_tarfile
zipfile.ZipInfo mimetypes.guess_type keyword.iskeyword collections.ChainMap collections.UserDict
collections.UserList
""", computed, source=_DOC),
    Row("""
logging.shutdown logging.addLevelName logging.config.dictConfig logging.config.fileConfig
logging.setLoggerClass warnings.resetwarnings sys.settrace sys.setprofile
importlib.invalidate_caches atexit.unregister os.nice os.setpgrp os.umask os.environ.pop
os.environ.clear os.unsetenv os.sched_setaffinity os.fsync os.close gc.freeze gc.unfreeze
gc.set_threshold tracemalloc.start tracemalloc.stop readline.read_history_file
socket.setdefaulttimeout cProfile.run
ssl.create_default_context colorama.init colorama.deinit urllib.request.install_opener
""", none, source=_DOC),
    Row("""
os.utime shutil.unpack_archive shutil.make_archive urllib.request.urlretrieve
gdown.download wget.download gdown.download_folder nltk.download
""", files_changed, source=_DOC),
    Row("traceback.print_stack traceback.print_exception traceback.print_tb logging.fatal"
        " rich.print rich.print_json icecream.ic click.echo click.secho typer.echo"
        " typer.secho loguru.logger.info loguru.logger.debug loguru.logger.warning"
        " loguru.logger.error loguru.logger.success loguru.logger.critical"
        " loguru.logger.exception loguru.logger.log loguru.logger.trace absl.logging.info"
        " absl.logging.warning absl.logging.error absl.logging.debug absl.logging.fatal"
        " absl.logging.log", printed, source=_DOC),
    Row("<parser>.error <parser>.exit", ended, source=_DOC + "argparse.html"),
    Row("<parser>.format_help <parser>.format_usage <parser>.get_default", uniform, source=_DOC),
    Row("argparse.FileType argparse.BooleanOptionalAction argparse.HelpFormatter"
        " argparse.ArgumentDefaultsHelpFormatter argparse.RawTextHelpFormatter"
        " argparse.RawDescriptionHelpFormatter", computed, source=_DOC + "argparse.html"),
    Row("""
threading.Condition threading.Semaphore threading.BoundedSemaphore threading.Barrier
queue.PriorityQueue queue.LifoQueue queue.SimpleQueue multiprocessing.Array multiprocessing.Value
multiprocessing.Lock multiprocessing.RLock multiprocessing.Event multiprocessing.Pipe
multiprocessing.JoinableQueue multiprocessing.SimpleQueue multiprocessing.Semaphore
subprocess.check_call subprocess.getoutput subprocess.getstatusoutput
""", opaque, source=_DOC),
)  # fmt: skip
_PATHS = "parent parents name stem suffix suffixes parts anchor drive root"
ATTRIBUTES = (
    Row(methods("str|text|number", _PATHS), part_of_path, source=_DOC + "pathlib.html"),
)  # fmt: skip


def pattern(name: str) -> Row | None:
    """Methods of Python's classes, and what the machine does at the moment."""
    parts = name.split(".")
    if parts[0] == "builtins" and len(parts) == 3 and parts[1] in _CLASSES:
        return Row(name, computed if parts[2] in _MAKING else unbound, source=_DOC)
    if name.startswith(("psutil.", "GPUtil.", "pynvml.", "py3nvml.", "gpustat.", "nvidia_smi.")):
        source = "https://psutil.readthedocs.io/"
        return Row(name, own_object("the state of the machine"), source=source)
    return None
