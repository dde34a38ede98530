"""The process, files, clocks and numbers of the standard library
(https://docs.python.org/3/library/).
"""

from __future__ import annotations

import ast

from dpmigrate.execution import derivation, placements
from dpmigrate.execution.context_managers import SWALLOWS
from dpmigrate.execution.joins import join
from dpmigrate.execution.placements import EQUAL, PER_RANK, UNKNOWN, Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Data,
    Foreign,
    Origin,
    Ref,
    Value,
    const,
    known,
    placement_of,
    value,
)
from dpmigrate.library import streams
from dpmigrate.library.builtins import ended, opened, printed
from dpmigrate.library.effects import coupled, none, number, plain, same, uniform
from dpmigrate.library.file_changes import FILE_CHANGES
from dpmigrate.library.natures import CLOCK, OF_PROCESS, TEMPORARY
from dpmigrate.library.sites import Effect, Row, Site, methods, prefixed
from dpmigrate.library.writers import written

_DOC = "https://docs.python.org/3/library/"
#: functions of ``random``, and methods of ``random.Random``, that draw
PYTHON_DRAWS = """
random randint uniform gauss choice choices sample randrange normalvariate getrandbits
betavariate expovariate triangular gammavariate lognormvariate paretovariate randbytes
vonmisesvariate weibullvariate binomialvariate
"""


def per_rank(word: str) -> Effect:
    """Something that each process has for itself: a clock, a process number, a random source."""

    def effect(site: Site) -> Value:
        origin = Origin(site.node, word)
        return value(Data("number", placements.PER_RANK, origin=origin))

    return effect


def random_number(site: Site) -> Value:
    """A draw from Python's stream, or from a ``random.Random``."""
    first = 0 if site.receiver is None else 1
    chosen = site.get(first) if site.word in ("choice", "choices", "sample") else None
    if not chosen:
        return streams.drawn(site, "random", SETTING)
    elements = site.m.elements(chosen, site.node, site.frame)
    elements = streams.drawn(site, "random", elements)
    if site.word == "choice":
        return elements
    return site.m.listed([elements], site.node, site.frame, exact=False)


def python_stream(site: Site) -> Value:
    """``random.Random(seed)``: without a seed one that the system gives."""
    given = site.get(0, "x") or NONE
    return streams.generator(site, "python_stream", given)


def system_stream(site: Site) -> Value:
    """``random.SystemRandom(seed)``: each number comes from the system, whatever seed there is."""
    return streams.generator(site, "python_stream", NONE)


def loaded(site: Site) -> Value:
    """``json.load``, ``yaml.safe_load``: plain data from a file, the same on every rank where that
    is; of another file, or another text, on each rank they differ.
    """
    site.event("read", path=site.get(0, "fp") or NOTHING)
    return plain(site)


def saved(site: Site) -> Value:
    """``json.dump``, ``pickle.dump``: a file is written."""
    site.event("save", what=site.get(0, "obj") or NOTHING, path=site.get(1, "fp") or NOTHING)
    return NONE


def files_changed(site: Site) -> Value:
    """Files or folders are made, moved or removed."""
    removed = const(site.word in ("rmtree", "rmdir"))
    paths = site.arguments.joined() or NONE
    site.event("files", paths=paths, removed=removed, changed=const(True))
    return NONE


def renamed(site: Site) -> Value:
    """``path.rename(target)``; what is named otherwise is no path: ``frame.rename(columns=…)``."""
    if set(site.arguments.keywords) - {"target"}:
        return site.get(0) or NOTHING
    return files_changed(site)


def temporary(site: Site) -> Value:
    """``NamedTemporaryFile()``: a file of the process's own."""
    site.event("open", path=NOTHING, mode=site.get(0, "mode") or const("w+b"))
    origin = Origin(site.node, TEMPORARY)
    return site.ref("file", name=value(Data("text", placements.PER_RANK, origin=origin)))


def archive(site: Site) -> Value:
    """``ZipFile(path, mode)``: an archive, whose members are the same on every rank."""
    site.event("open", path=site.get(0) or NOTHING, mode=site.get(1, "mode") or NOTHING)
    return uniform(site)


def characters(effect: Effect) -> Effect:
    """``file.write(text)``: what is written is so many characters long."""

    def counted(site: Site) -> Value:
        effect(site)
        given = [v for v in site.arguments.all() if placement_of(v).kind not in EQUAL]
        if not given:
            return SETTING
        unknown = any(placement_of(v).kind is Kind.UNKNOWN for v in given)
        return derivation.derived(
            "length", UNKNOWN if unknown else PER_RANK, given, site.node, kind="number", axes=0
        )

    return counted


def import_by_name(site: Site) -> Value | None:
    """``importlib.import_module(name)``: where the name is computed, each module that it may be."""
    name = known(site.get(0) or NOTHING)
    if isinstance(name, str):
        index = site.m._importer(site.frame)
        return site.m.load(index, name, site.frame) or value(Foreign(name))
    begins = _beginning(getattr(site.node, "args", []))
    found = [
        site.m.load(importer, dotted, site.frame) or NOTHING
        for importer, dotted in sorted(site.m.program.links)
        if importer == site.m._importer(site.frame)
        and dotted.rpartition(".")[2] in site.m.program.computed
        and dotted.startswith(begins)
    ]
    return join(*found) or None


def _beginning(arguments: list[ast.expr]) -> str:
    """What a text that is put together begins with: ``f"models.{name}"``, ``"models." + name``."""
    first: ast.AST | None = arguments[0] if arguments else None
    while isinstance(first, ast.BinOp | ast.JoinedStr):
        first = first.left if isinstance(first, ast.BinOp) else next(iter(first.values), None)
    plain = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return str(first.value).partition("%")[0] if plain else ""  # type: ignore[union-attr]


def opaque(site: Site) -> Value:
    """An object of which nothing is known but that it is the same on every rank."""
    return site.ref("opaque")


def context(site: Site) -> Value:
    """Something for ``with``."""
    return site.ref("context")


def suppressing(site: Site) -> Value:
    """``contextlib.suppress(KeyError)``: an exception of the body ends with it."""
    given = [a for v in site.arguments.all() for a in v]
    names = tuple(a.name.rpartition(".")[2] for a in given if isinstance(a, Foreign))
    made = site.made("context", extra=names if len(names) == len(given) else None)
    made.marks.add(SWALLOWS)
    return value(Ref(made.number))


def serialised(site: Site) -> Value:
    """``json.dumps(x)``: a text of all that is in it."""
    given = site.get(0, "obj") or NOTHING
    inside: list[Value] = [(a,) for part in site.apart(given) for a in part]
    if not inside:
        return plain(site)
    return site.m.text(inside, site.node, site.frame)


ROWS = (
    Row("json.dumps", serialised, source="https://docs.python.org/3/library/json.html"),
    Row("""
os.path.join os.path.dirname os.path.basename os.path.abspath os.path.splitext
os.path.expanduser os.path.realpath os.path.split os.path.normpath os.path.relpath sys.getsizeof
re.compile re.match re.search re.sub re.findall re.split re.fullmatch re.escape
textwrap.dedent hashlib.md5 hashlib.sha256 base64.b64encode logging.getLevelName
ast.literal_eval shlex.split struct.unpack struct.pack struct.calcsize datetime.timedelta
pathlib.Path pathlib.PurePath datetime.datetime.strptime datetime.datetime.fromtimestamp
datetime.datetime datetime.date itertools.accumulate bisect.bisect
bisect.bisect_left bisect.bisect_right heapq.nlargest heapq.nsmallest fnmatch.fnmatch uuid.UUID
os.path.commonprefix
""", plain, source=_DOC),
    Row("""
os.getcwd os.cpu_count os.uname os.sep platform.system platform.node inspect.signature
inspect.getsource string.Template copyreg itertools.count inspect.isclass inspect.getmembers
inspect.isfunction types.FunctionType typing.TypeVar typing.NewType locale.setlocale
collections.abc io.BytesIO io.StringIO
urllib.request.urlopen operator.itemgetter operator.attrgetter shutil.which
multiprocessing.cpu_count configparser.ConfigParser warnings.catch_warnings sys.exc_info
traceback.format_exc importlib.util.find_spec math.inf pathlib.Path.cwd pathlib.Path.home
importlib.find_loader pkgutil.find_loader
string.ascii_letters getpass.getuser dataclasses.field os.path.sep os.getlogin
""", uniform, source=_DOC),
    Row("""
os.chdir os.system logging.disable
logging.captureWarnings warnings.filterwarnings warnings.simplefilter time.sleep gc.collect
gc.disable gc.enable signal.signal atexit.register sys.path.append sys.path.insert
sys.stdout.flush sys.stderr.flush sys.setrecursionlimit faulthandler.enable
multiprocessing.freeze_support multiprocessing.set_start_method resource.setrlimit
csv.field_size_limit sys.stdout.close readline.parse_and_bind os.kill
""", none, source=_DOC),
    Row(" ".join(sorted(FILE_CHANGES)), files_changed, source=_DOC),
    Row("shutil.copyfileobj", files_changed, source=_DOC),
    Row("""
logging.info logging.debug logging.warning logging.error logging.critical logging.exception
logging.log logging.warn sys.stdout.writelines
sys.stderr.writelines sys.__stdout__.write sys.__stderr__.write warnings.warn
traceback.print_exc pprint.pprint pprint.pp
""", printed, source=_DOC),
    Row("""
time.time time.perf_counter time.monotonic time.process_time time.clock time.strftime
time.localtime time.ctime time.time_ns time.gmtime datetime.datetime.now
datetime.datetime.utcnow datetime.datetime.today datetime.date.today datetime.now
timeit.default_timer
""", per_rank(CLOCK), source=_DOC),
    Row("""
os.getpid os.urandom uuid.uuid4 uuid.uuid1 secrets.token_hex socket.gethostname
""", per_rank(OF_PROCESS), source=_DOC),
    Row(prefixed("math.", """
sqrt exp log log2 log10 ceil floor pow sin cos tan fabs isnan isinf isfinite tanh atan2
radians degrees hypot gcd erf fmod trunc log1p expm1 copysign
"""), number, ("math.sqrt(4.0)", "math.exp(x.mean().item())"), _DOC),
    Row(prefixed("random.", PYTHON_DRAWS), random_number, source=_DOC),
    Row("""
tempfile.NamedTemporaryFile tempfile.TemporaryFile tempfile.SpooledTemporaryFile
""", temporary, source=_DOC),
    Row("io.open gzip.open bz2.open lzma.open wave.open", opened, source=_DOC),
    Row("zipfile.ZipFile tarfile.open", archive, source=_DOC),
    Row("random.Random", python_stream, source=_DOC),
    Row("random.SystemRandom", system_stream, source=_DOC),
    Row(methods("python_stream", PYTHON_DRAWS), random_number, source=_DOC),
    Row("<python_stream>.getstate", uniform, source=_DOC),
    Row("<python_stream>.setstate", none, source=_DOC),
    Row("sys.exit os._exit os.abort", ended, source=_DOC),
    Row("""
json.load json.loads pickle.load pickle.loads yaml.safe_load yaml.load yaml.full_load
toml.load tomllib.load joblib.load _pickle.load _pickle.loads cPickle.load cPickle.loads dill.load
dill.loads cloudpickle.load cloudpickle.loads pickle5.load ujson.load ujson.loads simplejson.load
simplejson.loads orjson.loads yaml.load_all yaml.safe_load_all tomli.load pickle.Unpickler
""", loaded, source=_DOC),
    Row("json.dump pickle.dump yaml.dump toml.dump yaml.safe_dump joblib.dump _pickle.dump"
        " cPickle.dump dill.dump cloudpickle.dump pickle5.dump ujson.dump simplejson.dump"
        " yaml.dump_all yaml.safe_dump_all", saved, source=_DOC),
    Row("sys.stdout.write sys.stderr.write", characters(printed), source=_DOC),
    Row("importlib.import_module builtins.__import__", import_by_name, source=_DOC),
    Row("statistics.mean statistics.stdev statistics.median", coupled, source=_DOC),
    Row("contextlib.suppress", suppressing, source=_DOC),
    Row("""
contextlib.nullcontext contextlib.ExitStack contextlib.redirect_stdout
contextlib.redirect_stderr
warnings.catch_warnings
""", context, source=_DOC),
    Row("""
threading.Lock threading.RLock queue.Queue multiprocessing.Queue multiprocessing.Manager
threading.Event multiprocessing.Pool concurrent.futures.ThreadPoolExecutor subprocess.run
subprocess.Popen subprocess.check_output subprocess.call csv.reader csv.DictReader
""", opaque, source=_DOC),
    Row("<file>.__enter__ <context>.__enter__ <writer>.__enter__", same, source=_DOC),
    Row("<file>.__exit__ <context>.__exit__ <writer>.__exit__", none, source=_DOC),
    # paths are settings: pathlib.Path(folder) / name
    Row("<setting|str|text>.open", opened, source=_DOC),
    Row(methods("setting|str|text", "write_text write_bytes"), written, source=_DOC),
    Row(methods("setting|str|text", """
rmdir unlink touch symlink_to hardlink_to chmod
"""), files_changed, source=_DOC),
    Row(methods("setting|str|text", "rename"), renamed, source=_DOC),
    Row("<file>.write", characters(written), source=_DOC),
    Row(methods("file", "writelines flush close"), written, source=_DOC),
    Row(methods("file", "read readlines readline __iter__"), plain, source=_DOC),
)  # fmt: skip


