"""More of the standard library: what computes, what differs between processes, what writes
(https://docs.python.org/3/library/).
"""

from __future__ import annotations

import ast

from dpmigrate.execution import divergence, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.heap import ELEMENTS
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Data,
    Origin,
    Value,
    items,
    join,
    value,
)
from dpmigrate.library import collections
from dpmigrate.library.builtins import ended, printed
from dpmigrate.library.effects import coupled, none, number, plain, uniform
from dpmigrate.library.pure import ANY, computed
from dpmigrate.library.sites import Effect, Row, Site, examples, methods, prefixed
from dpmigrate.library.stdlib import files_changed, opaque, per_rank, random_number

_DOC = "https://docs.python.org/3/library/"
_OPERATORS: dict[str, ast.operator] = {
    "add": ast.Add(), "sub": ast.Sub(), "mul": ast.Mult(), "truediv": ast.Div(),
    "floordiv": ast.FloorDiv(), "mod": ast.Mod(), "pow": ast.Pow(), "and_": ast.BitAnd(),
    "or_": ast.BitOr(), "xor": ast.BitXor(), "matmul": ast.MatMult(), "iadd": ast.Add(),
    "concat": ast.Add(), "imul": ast.Mult(), "isub": ast.Sub(), "itruediv": ast.Div(),
}  # fmt: skip


def operated(site: Site) -> Value:
    """``operator.mul(a, b)``: the operator itself."""
    left, right = site.get(0) or NOTHING, site.get(1) or NOTHING
    word = site.word.removeprefix("__").removesuffix("__")
    op = _OPERATORS.get(word) or _OPERATORS[f"{word}_"]
    return site.m.operate(op, left, right, site.node, site.frame)


def got(site: Site) -> Value:
    """``operator.getitem(x, key)``."""
    return site.m.item(
        site.get(0) or NOTHING, site.get(1) or NOTHING, site.node, site.frame
    )


def tested(site: Site) -> Value:
    """``operator.lt(a, b)``: a test of each element."""
    return site.each() if site.operands() else plain(site)


def fields(site: Site) -> Value:
    """``vars(x)``, ``dataclasses.asdict(x)``: a dictionary of the fields of an object."""
    found: list[Value] = []
    for atom in site.get(0) or NOTHING:
        made = site.m.object(atom)
        if made is None or made.kind not in ("instance", "namespace"):
            found.append(plain(site))
            continue
        new = site.m.namespace(made, site.node, site.frame)
        rest = site.m.heap.read((made.number, ELEMENTS))
        if rest:
            site.m.heap.widen((site.m.objects(new)[0].number, ELEMENTS), rest)
        found.append(new)
    return join(*found) or SETTING


def replaced(site: Site) -> Value:
    """``dataclasses.replace(x, a=1)``: another one with other fields."""
    made = collections.copied(site)
    for o in site.m.objects(made):
        for name, held in site.arguments.keywords.items():
            site.m.heap.put((o.number, name), held)
    return made


def marked(site: Site) -> Value:
    """``dataclass(C)``; ``dataclass(frozen=True)`` is a decorator, which the machine knows."""
    given = site.get(0)
    for made in site.m.objects(given or NOTHING):
        made.marks.add("dataclass")
    return given or site.ref("opaque")


def pushed(site: Site) -> Value:
    """``heapq.heappush(xs, x)``, ``bisect.insort(xs, x)``: one item more, in its place."""
    _on_list(site, "append", Arguments([site.get(1) or NOTHING]))
    _on_list(site, "sort", Arguments())
    return NONE


def popped(site: Site) -> Value:
    """``heapq.heappop(xs)``, ``heapreplace(xs, x)``: the least item, which is taken out."""
    first = _on_list(site, "pop", Arguments([SETTING]))
    if site.word != "heappop":
        _on_list(site, "append", Arguments([site.get(1) or NOTHING]))
        first = join(first, site.get(1) or NOTHING) if site.word == "heappushpop" else first
    return first


def ordered(site: Site) -> Value:
    """``heapq.heapify(xs)``."""
    return _on_list(site, "sort", Arguments())


def _on_list(site: Site, name: str, given: Arguments) -> Value:
    owners = site.get(0) or NOTHING
    found = [
        site.m.container_method(o, name, given, site.node, site.frame) or NOTHING
        for o in site.m.objects(owners)
        if o.kind == "list"
    ]
    return join(*found) or computed(site)


def groups(site: Site) -> Value:
    """``itertools.groupby(xs, key)``: keys with the items that have them."""
    each = site.m.taken(site.get(0) or NOTHING, site.node, site.frame)
    function = site.get(1, "key")
    key = each
    if function and function != NONE:
        key = site.m.call(function, Arguments([each]), site.node, site.frame)
    return _any_number(site, [items([key, _any_number(site, [each], "set")])])


def pairs(site: Site) -> Value:
    """``itertools.pairwise(xs)``."""
    each = site.m.taken(site.get(0) or NOTHING, site.node, site.frame)
    return _any_number(site, [items([each, each])])


def kept(site: Site) -> Value:
    """``itertools.takewhile(test, xs)``: some of the items; which, the test says."""
    at = 0 if site.word == "compress" else 1
    each = site.m.taken(site.get(at) or NOTHING, site.node, site.frame)
    test = site.get(1 - at) or NOTHING
    if at:
        test = site.m.call(test, Arguments([each]), site.node, site.frame)
    parted = site.m.parting(test, site.node)
    made = divergence.differing(each, parted) if parted is not None and each else each
    return _any_number(site, [made])


def spread(site: Site) -> Value:
    """``itertools.starmap(f, pairs)``."""
    each = site.m.taken(site.get(1) or NOTHING, site.node, site.frame)
    known = site.m.known_elements(each)
    given = Arguments(known) if known is not None else Arguments(star=each)
    return _any_number(
        site, [site.m.call(site.get(0) or NOTHING, given, site.node, site.frame)]
    )


def _any_number(site: Site, each: list[Value], kind: str = "list") -> Value:
    kind = "list" if kind == "set" else kind
    return site.m.listed(each, site.node, site.frame, exact=False, kind=kind)


def own_path(site: Site) -> Value:
    """``tempfile.mkdtemp()``: a name of the process's own."""
    site.event("files", paths=NONE)
    name = value(Data("text", placements.PER_RANK, origin=Origin(site.node, "a temporary name")))
    return items([SETTING, name]) if site.word == "mkstemp" else name


def own_folder(site: Site) -> Value:
    """``tempfile.TemporaryDirectory()``."""
    site.event("files", paths=NONE)
    origin = Origin(site.node, "a temporary name")
    return site.ref("own folder", name=value(Data("text", placements.PER_RANK, origin=origin)))


def own_folder_entered(site: Site) -> Value:
    """``with TemporaryDirectory() as path``."""
    assert site.object is not None
    return site.m.heap.read((site.object.number, "name")) or SETTING


def own_object(word: str) -> Effect:
    """An object of the process's own: whatever it says differs."""

    def effect(site: Site) -> Value:
        made = site.ref(ANY)
        held = value(Data(ANY, placements.PER_RANK, origin=Origin(site.node, word)))
        site.m.heap.write((site.m.objects(made)[0].number, ELEMENTS), held)
        return made

    return effect


def timed(site: Site) -> Value:
    """``timeit.timeit(f)``: how long it takes."""
    for v in site.arguments.positional[:1]:
        if site.m.objects(v):
            site.m.call(v, Arguments(), site.node, site.frame)
    return per_rank("a clock")(site) or NOTHING


def given_back(site: Site) -> Value:
    """``contextlib.closing(x)``: x."""
    return site.get(0) or NOTHING


def part_of_path(site: Site) -> Value:
    """``path.parent``, ``path.name``: made of the path."""
    return plain(site)


_NUMBERS = """
acos acosh asin asinh atan atanh cbrt comb cosh erfc exp2 factorial gamma isclose isqrt lcm
ldexp lgamma modf perm remainder sinh ulp nextafter
"""
ROWS = (
    Row(prefixed("math.", _NUMBERS), number, ("math.atan(x.mean().item())",), _DOC),
    Row("math.fsum math.prod math.dist math.sumprod", coupled, source=_DOC),
    Row("math.frexp", computed, source=_DOC),
    Row(prefixed("operator.", " ".join(_OPERATORS)), operated, examples("""
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
    Row("contextlib.closing", given_back, source=_DOC),
    Row("contextlib.chdir", lambda site: site.ref("context"), source=_DOC),
    Row("tempfile.mkdtemp tempfile.mktemp tempfile.mkstemp", own_path, source=_DOC),
    Row("tempfile.TemporaryDirectory", own_folder, source=_DOC),
    Row("<own_folder>.__enter__", own_folder_entered, source=_DOC),
    Row("<own_folder>.__exit__ <own_folder>.cleanup", none, source=_DOC),
    Row("tempfile.gettempdir tempfile.gettempprefix", uniform, source=_DOC),
    Row("""
time.asctime time.thread_time time.thread_time_ns time.monotonic_ns time.perf_counter_ns
time.process_time_ns os.getppid os.getloadavg os.times os.getrandom threading.get_ident
threading.get_native_id uuid.getnode uuid.uuid6 uuid.uuid7 socket.getfqdn
socket.gethostbyname resource.getrusage shutil.disk_usage
tracemalloc.get_traced_memory gc.get_count random.SystemRandom secrets.choice
secrets.randbelow secrets.randbits secrets.token_bytes secrets.token_urlsafe sys.getrefcount
datetime.date.fromtimestamp.now pandas.Timestamp.now pandas.Timestamp.today arrow.now
arrow.utcnow pendulum.now pandas.Timestamp.utcnow numpy.random.bytes
""", per_rank("a clock or a number of the process"), source=_DOC),
    Row("""
socket.socket socket.create_connection threading.current_thread multiprocessing.current_process
multiprocessing.parent_process asyncio.get_event_loop psutil.Process tracemalloc.take_snapshot
""", own_object("an object of the process"), source=_DOC),
    Row("timeit.timeit timeit.repeat", timed, source=_DOC),
    Row(prefixed("random.", """
gammavariate lognormvariate paretovariate randbytes vonmisesvariate weibullvariate binomialvariate
"""), random_number, source=_DOC),
    Row("random.getstate", uniform, source=_DOC),
    Row("random.setstate", none, source=_DOC),
    Row("""
time.strptime time.mktime datetime.time datetime.timezone datetime.tzinfo
datetime.datetime.combine datetime.datetime.fromisoformat datetime.date.fromisoformat
datetime.date.fromtimestamp datetime.datetime.utcfromtimestamp uuid.uuid3 uuid.uuid5
pickle.dumps json.JSONEncoder json.JSONDecoder toml.dumps yaml.safe_dump_all
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
socket.setdefaulttimeout cProfile.run pdb.set_trace
ssl.create_default_context colorama.init colorama.deinit urllib.request.install_opener
random.SystemRandom.seed mp.log_to_stderr
""", none, source=_DOC),
    Row("""
os.link os.truncate os.chown os.removedirs os.utime os.mkfifo shutil.unpack_archive
shutil.make_archive shutil.chown shutil.copystat shutil.copymode urllib.request.urlretrieve
gdown.download wget.download gdown.download_folder nltk.download
""", files_changed, source=_DOC),
    Row("traceback.print_stack traceback.print_exception traceback.print_tb logging.fatal"
        " print_tb rich.print rich.print_json icecream.ic click.echo click.secho typer.echo"
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
    """What the machine does at the moment."""
    if name.startswith(("psutil.", "GPUtil.", "pynvml.", "py3nvml.", "gpustat.", "nvidia_smi.")):
        source = "https://psutil.readthedocs.io/"
        return Row(name, own_object("the state of the machine"), source=source)
    return None
