"""The process, files, clocks and numbers of the standard library
(https://docs.python.org/3/library/).
"""

from __future__ import annotations

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.arguments import Arguments
from dpmigrate.execution.placements import EQUAL, PER_RANK, UNKNOWN, Kind
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Data,
    Foreign,
    Origin,
    Setting,
    Value,
    const,
    join,
    known,
    placement_of,
    value,
)
from dpmigrate.library import streams
from dpmigrate.library.builtins import ended
from dpmigrate.library.effects import elementwise, none, number, plain, same, uniform
from dpmigrate.library.sites import Effect, Row, Site, methods, prefixed

_DOC = "https://docs.python.org/3/library/"


def per_rank(word: str) -> Effect:
    """Something that each process has for itself: a clock, a process number, a random source."""

    def effect(site: Site) -> Value:
        origin = Origin(site.node, word)
        return value(Data("number", placements.PER_RANK, origin=origin))

    return effect


def random_number(site: Site) -> Value:
    """A draw from Python's stream: the same on all ranks as long as they draw together (see
    seeds).
    """
    site.event("draw", stream=const("random"))
    chosen = site.get(0) if site.word in ("choice", "choices", "sample") else None
    if chosen:
        elements = streams.drawn(site, site.m.elements(chosen, site.node, site.frame))
        if site.word == "choice":
            return elements
        return site.m.listed([elements], site.node, site.frame, exact=False)
    return streams.drawn(site, SETTING)


def loaded(site: Site) -> Value:
    """``json.load``, ``yaml.safe_load``: plain data from a file, the same on every rank."""
    site.event("read", path=site.get(0) or NOTHING)
    return SETTING


def saved(site: Site) -> Value:
    """``json.dump``, ``pickle.dump``: a file is written."""
    site.event("save", what=site.get(0) or NOTHING, path=site.get(1) or NOTHING)
    return NONE


def written(site: Site) -> Value:
    """A method of a file or a writer: what is written."""
    site.event("write", values=site.arguments.joined() or NONE)
    return NONE


def characters(effect: Effect) -> Effect:
    """``file.write(text)``: what is written is so many characters long."""

    def counted(site: Site) -> Value:
        effect(site)
        given = [v for v in site.arguments.all() if placement_of(v).kind not in EQUAL]
        if not given:
            return SETTING
        unknown = any(placement_of(v).kind is Kind.UNKNOWN for v in given)
        return arithmetic.derived(
            "length", UNKNOWN if unknown else PER_RANK, given, site.node, kind="number", axes=0
        )

    return counted


def process_started(site: Site) -> Value:
    """Another process or thread runs a function."""
    site.event("process", target=site.get(-1, "target") or site.get(0) or NOTHING)
    target = site.get(-1, "target")
    if target:
        given = site.arguments.keywords.get("args")
        listed = site.m.known_elements(given) if given else None
        site.m.call(
            target,
            Arguments(listed or [], star=given or NOTHING if listed is None else NOTHING),
            site.node,
            site.frame,
        )
    return site.ref("process")


def import_by_name(site: Site) -> Value | None:
    """``importlib.import_module(name)``."""
    name = known(site.get(0) or NOTHING)
    if isinstance(name, str):
        index = site.m._importer(site.frame)
        return site.m.load(index, name, site.frame) or value(Foreign(name))
    return None


def environment(site: Site) -> Value:
    """``os.environ.get(name)``: the same on every rank but for what torchrun sets."""
    name = known(site.get(0) or NOTHING)
    if name in ("RANK", "LOCAL_RANK", "GROUP_RANK"):
        return per_rank(name)(site) or NOTHING
    default = site.get(1)
    return join(value(Setting(str(name or ""))), default or NOTHING)


def opaque(site: Site) -> Value:
    """An object of which nothing is known but that it is the same on every rank."""
    return site.ref("opaque")


def context(site: Site) -> Value:
    """Something for ``with``."""
    return site.ref("context")


def writer(site: Site) -> Value:
    """Something that text is written to."""
    return site.ref("writer")


ROWS = (
    Row("""
os.path.join os.path.dirname os.path.basename os.path.abspath os.path.splitext
os.path.expanduser os.path.realpath os.path.split os.path.normpath os.path.relpath sys.getsizeof
re.compile re.match re.search re.sub re.findall re.split re.fullmatch re.escape json.dumps
textwrap.dedent hashlib.md5 hashlib.sha256 base64.b64encode logging.getLevelName
ast.literal_eval shlex.split struct.unpack struct.pack struct.calcsize datetime.timedelta
pathlib.Path pathlib.PurePath datetime.datetime.strptime datetime.datetime.fromtimestamp
datetime.datetime datetime.date itertools.accumulate operator.add bisect.bisect
bisect.bisect_left bisect.bisect_right heapq.nlargest heapq.nsmallest fnmatch.fnmatch uuid.UUID
dataclasses.asdict dataclasses.replace os.path.commonprefix
""", plain, source=_DOC),
    Row("""
os.getcwd os.cpu_count os.uname os.sep platform.system platform.node inspect.signature
inspect.getsource string.Template copyreg itertools.count inspect.isclass inspect.getmembers
inspect.isfunction types.FunctionType typing.TypeVar typing.NewType locale.setlocale
collections.abc zipfile.ZipFile gzip.open bz2.open tarfile.open io.BytesIO io.StringIO io.open
urllib.request.urlopen operator.itemgetter operator.attrgetter shutil.which
multiprocessing.cpu_count configparser.ConfigParser warnings.catch_warnings sys.exc_info
traceback.format_exc importlib.util.find_spec math.inf pathlib.Path.cwd pathlib.Path.home
string.ascii_letters getpass.getuser dataclasses.field os.path.sep os.getlogin
""", uniform, source=_DOC),
    Row("""
os.remove os.rename os.replace os.rmdir os.chdir os.system os.unlink os.symlink
os.environ.setdefault os.environ.update os.putenv os.chmod shutil.copy shutil.copyfile
shutil.rmtree shutil.move shutil.copytree shutil.copy2 logging.basicConfig logging.info
logging.debug logging.warning logging.error logging.critical logging.exception logging.disable
logging.captureWarnings warnings.filterwarnings warnings.warn warnings.simplefilter time.sleep
gc.collect gc.disable gc.enable signal.signal atexit.register sys.path.append sys.path.insert
sys.stdout.flush sys.setrecursionlimit random.seed faulthandler.enable traceback.print_exc
pprint.pprint multiprocessing.freeze_support multiprocessing.set_start_method resource.setrlimit
os.environ.__setitem__ csv.field_size_limit sys.stdout.close readline.parse_and_bind
heapq.heappush os.kill
""", none, source=_DOC),
    Row("""
time.time time.perf_counter time.monotonic time.process_time time.clock time.strftime
time.localtime time.ctime time.time_ns datetime.datetime.now datetime.datetime.utcnow
datetime.datetime.today datetime.date.today datetime.now timeit.default_timer os.getpid
os.urandom uuid.uuid4 uuid.uuid1 secrets.token_hex socket.gethostname time.gmtime
""", per_rank("a clock or a number of the process"), source=_DOC),
    Row(prefixed("math.", """
sqrt exp log log2 log10 ceil floor pow sin cos tan fabs isnan isinf isfinite tanh atan2
radians degrees hypot gcd erf fmod trunc log1p expm1 prod copysign
"""), number, ("math.sqrt(4.0)", "math.exp(x.mean().item())"), _DOC),
    Row(prefixed("random.", """
random randint uniform gauss choice choices sample randrange normalvariate getrandbits
betavariate expovariate triangular
"""), random_number, source=_DOC),
    Row("random.Random", uniform, source=_DOC),
    Row("sys.exit os._exit os.abort", ended, source=_DOC),
    Row("os.environ.get os.getenv os.environ.__getitem__", environment, source=_DOC),
    Row("""
json.load json.loads pickle.load pickle.loads yaml.safe_load yaml.load yaml.full_load
toml.load tomllib.load joblib.load
""", loaded, source=_DOC),
    Row("json.dump pickle.dump yaml.dump toml.dump yaml.safe_dump joblib.dump", saved, source=_DOC),
    Row("sys.stdout.write sys.stderr.write", characters(none), source=_DOC),
    Row("threading.Thread multiprocessing.Process", process_started, source=_DOC),
    Row("importlib.import_module builtins.__import__", import_by_name, source=_DOC),
    Row("""
csv.writer csv.DictWriter logging.getLogger logging.StreamHandler logging.FileHandler
logging.Formatter logging.handlers.RotatingFileHandler logging.LoggerAdapter logging.NullHandler
""", writer, source=_DOC),
    Row("statistics.mean statistics.stdev statistics.median", elementwise, source=_DOC),
    Row("""
contextlib.nullcontext contextlib.suppress contextlib.ExitStack contextlib.redirect_stdout
contextlib.redirect_stderr tempfile.TemporaryDirectory tempfile.NamedTemporaryFile
warnings.catch_warnings
""", context, source=_DOC),
    Row("""
threading.Lock threading.RLock queue.Queue multiprocessing.Queue multiprocessing.Manager
threading.Event multiprocessing.Pool concurrent.futures.ThreadPoolExecutor subprocess.run
subprocess.Popen subprocess.check_output subprocess.call csv.reader csv.DictReader
""", opaque, source=_DOC),
    Row("<file>.__enter__ <context>.__enter__ <writer>.__enter__", same, source=_DOC),
    Row("<file>.__exit__ <context>.__exit__ <writer>.__exit__", none, source=_DOC),
    Row("<file>.write", characters(written), source=_DOC),
    Row(methods("file", "writelines flush close"), written, source=_DOC),
    Row(methods("file", "read readlines readline __iter__"), uniform, source=_DOC),
    Row(methods("writer", """
writerow writerows writeheader info debug warning error setLevel addHandler setFormatter log
critical exception warn removeHandler hasHandlers close flush write
"""), written, source=_DOC),
)  # fmt: skip


ATTRIBUTES = (Row(methods("writer", "handlers level name propagate"), uniform, source=_DOC),)
