"""The standard library."""

from __future__ import annotations

from dpmigrate.execution import arithmetic, placements
from dpmigrate.execution.foreign import Arguments
from dpmigrate.execution.values import (
    NONE,
    NOTHING,
    SETTING,
    Const,
    Data,
    Foreign,
    Origin,
    Ref,
    Setting,
    Value,
    const,
    items,
    join,
    known,
    value,
)
from dpmigrate.library.builtins import collected, ended, wrapped
from dpmigrate.library.effects import elementwise, none, number, same, uniform
from dpmigrate.library.sites import Effect, Row, Site, table, words


def per_rank(word: str) -> Effect:
    """Something that each process has for itself: a clock, a process number, a random source."""

    def effect(site: Site) -> Value:
        origin = Origin(site.node, word)
        return value(Data("number", placements.PER_RANK, origin=origin))

    return effect


def option_added(site: Site) -> Value:
    """``add_argument("--batch-size", default=64)``: a field of the namespace that parsing gives."""
    owner = site.object
    names = [known(v) for v in site.arguments.positional]
    words = [n for n in names if isinstance(n, str)]
    dest = known(site.arguments.keywords.get("dest", NOTHING))
    word = dest or next((w for w in words if w.startswith("--")), words[0] if words else None)
    if owner is None or not isinstance(word, str):
        return SETTING
    word = word.lstrip("-").replace("-", "_")
    default = site.arguments.keywords.get("default", NONE)
    action = known(site.arguments.keywords.get("action", NOTHING))
    if action in ("store_true", "store_false"):
        default = site.arguments.keywords.get("default", const(action == "store_false"))
    held = [a for a in default if isinstance(a, Const)]
    option = Setting(word, held[0] if held and held[0].value is not None else None)
    found: Value = (option,)
    if default == NONE:
        found = (option, *NONE)
    others = tuple(a for a in default if not isinstance(a, Const | Setting))
    root = site.m.heap.read((owner.number, "root"))
    for o in site.m.objects(root) if root else [owner]:
        site.m.heap.write((o.number, f"option {word}"), (*found, *others))
    return SETTING


def group_added(site: Site) -> Value:
    """``add_argument_group``, ``add_parser``: options of the same parser."""
    made = site.made("parser")
    if site.object is not None:
        root = site.m.heap.read((site.object.number, "root")) or value(Ref(site.object.number))
        site.m.heap.write((made.number, "root"), root)
    return value(Ref(made.number))


def parsed(site: Site) -> Value:
    """``parse_args()``: a namespace with the options of the parser."""
    made = site.made("namespace")
    if site.object is not None:
        for name, held in site.m.heap.names(site.object.number):
            if isinstance(name, str) and name.startswith("option "):
                site.m.heap.write((made.number, name[len("option ") :]), held)
    found = value(Ref(made.number))
    return items([found, SETTING]) if site.word == "parse_known_args" else found


def defaults_set(site: Site) -> Value:
    """``parser.set_defaults(a=1)``."""
    if site.object is not None:
        for name, held in site.arguments.keywords.items():
            site.m.heap.write((site.object.number, f"option {name}"), held)
    return NONE


def namespace(site: Site) -> Value:
    """``Namespace(a=1)``, ``SimpleNamespace(**config)``."""
    made = site.made("namespace")
    for name, held in site.arguments.keywords.items():
        site.m.heap.write((made.number, name), held)
    if site.arguments.stars:
        site.m.heap.write((made.number, "*"), site.arguments.stars)
    return value(Ref(made.number))


def partial(site: Site) -> Value:
    """``functools.partial(f, …)``."""
    made = site.made("partial")
    a = site.arguments
    if a.positional:
        site.m.heap.write((made.number, "function"), a.positional[0])
    made.extra = Arguments(a.positional[1:], dict(a.keywords), a.star, a.stars)
    return value(Ref(made.number))


def wraps(site: Site) -> Value:
    """``functools.wraps(f)``: a decorator that changes nothing."""
    return value(Foreign("dpmigrate.identity"))


def default_dict(site: Site) -> Value:
    """``defaultdict(list)``."""
    made = site.made("dict")
    factory = site.get(0)
    if factory:
        site.m.heap.write((made.number, "#factory"), factory)
    return value(Ref(made.number))


def counter(site: Site) -> Value:
    """``Counter()``."""
    made = site.made("dict")
    for v in site.arguments.positional:
        elements = site.m.elements(v, site.node, site.frame)
        held = (
            arithmetic.elementwise("count", [elements], site.node)
            if site.flat(elements)
            else SETTING
        )
        site.m.heap.widen((made.number, "*"), held)
        site.m.heap.widen((made.number, "#keys"), elements or SETTING)
    return value(Ref(made.number))


def chained(site: Site) -> Value:
    """``chain(a, b)``: the elements of all."""
    sources = site.arguments.positional
    if site.word == "from_iterable" and sources:
        sources = site.m.known_elements(sources[0]) or [
            site.m.elements(sources[0], site.node, site.frame)
        ]
    found = [site.m.elements(s, site.node, site.frame) for s in sources]
    return site.m.listed([join(*found)], site.node, site.frame, exact=False)


def product(site: Site) -> Value:
    """``itertools.product(a, b)``."""
    parts = [site.m.elements(s, site.node, site.frame) for s in site.arguments.positional]
    return site.m.listed([items(parts)], site.node, site.frame, exact=False)


def named_tuple(site: Site) -> Value:
    """``namedtuple("P", "a b")``: a class of tuples with names."""
    made = site.made("tuple class")
    fields = site.get(1)
    listed = site.m.known_elements(fields) if fields else None
    words = known(fields) if fields else None
    if isinstance(words, str):
        made.extra = words.replace(",", " ").split()
    elif listed is not None:
        made.extra = [str(known(v)) for v in listed]
    return value(Ref(made.number))


def tuple_made(site: Site) -> Value:
    """A call of a namedtuple class."""
    cls = site.object
    made = site.made("namespace")
    for i, name in enumerate(cls.extra or () if cls is not None else ()):
        held = site.arguments.get(i, name)
        if held is not None:
            site.m.heap.write((made.number, name), held)
            site.m.heap.write((made.number, Const("int", i)), held)
    return value(Ref(made.number))


def namespace_item(site: Site) -> Value | None:
    """An item of a namedtuple."""
    owner = site.object
    key = site.m.constant(site.get(1) or NOTHING)
    if owner is None:
        return None
    if key is not None:
        return site.m.heap.read((owner.number, key))
    return join(*[h for n, h in site.m.heap.names(owner.number)])


def namespace_elements(site: Site) -> Value:
    """A loop over a namedtuple."""
    owner = site.object
    assert owner is not None
    return join(*[h for n, h in site.m.heap.names(owner.number) if isinstance(n, Const)]) or SETTING


def random_number(site: Site) -> Value:
    """A draw from Python's stream: the same on all ranks as long as they draw together (see seeds)."""
    site.event("draw", stream=const("random"))
    chosen = site.get(0) if site.word in ("choice", "choices", "sample") else None
    if chosen:
        elements = site.m.elements(chosen, site.node, site.frame)
        if site.word == "choice":
            return elements
        return site.m.listed([elements], site.node, site.frame, exact=False)
    return SETTING


def copied(site: Site) -> Value:
    """``copy.deepcopy(x)``: another object of the same kind with the same fields."""
    given = site.get(0) or NOTHING
    found: list[Value] = []
    for atom in given:
        made = site.m.object(atom)
        if made is None or made.kind in ("function", "class", "pymodule"):
            found.append((atom,))
            continue
        new = site.m.heap.new(
            made.kind, made.name, site.node, site.frame.context, key=made.number, extra=made.extra
        )
        for name, held in site.m.heap.names(made.number):
            site.m.heap.write((new.number, name), held)
        site.event("made", object=value(Ref(new.number)))
        found.append(value(Ref(new.number)))
    return join(*found)


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


def identity(site: Site) -> Value:
    """A decorator that gives back what it is given."""
    return site.get(0) or NOTHING


def environment(site: Site) -> Value:
    """``os.environ.get(name)``: the same on every rank but for what torchrun sets."""
    name = known(site.get(0) or NOTHING)
    if name in ("RANK", "LOCAL_RANK", "GROUP_RANK"):
        return per_rank(name)(site) or NOTHING
    default = site.get(1)
    return join(value(Setting(str(name or ""))), default or NOTHING)


_UNIFORM = words(
    """
os.path.join os.path.exists os.path.isfile os.path.isdir os.path.dirname os.path.basename
os.path.abspath os.path.splitext os.path.expanduser os.path.realpath os.path.getsize
os.path.split os.path.normpath os.path.relpath os.listdir os.walk os.getcwd os.cpu_count
os.path.getmtime os.scandir os.access os.uname os.sep glob.glob glob.iglob sys.getsizeof
platform.system platform.node re.compile re.match re.search re.sub re.findall re.split
re.fullmatch re.escape math.ceil_ inspect.signature inspect.getsource json.dumps
textwrap.dedent string.Template hashlib.md5 hashlib.sha256 base64.b64encode copyreg
logging.getLevelName itertools.count itertools.cycle_ inspect.isclass inspect.getmembers
inspect.isfunction types.FunctionType typing.cast_ typing.TypeVar typing.NewType
typing.NamedTuple_ ast.literal_eval locale.setlocale collections.abc shlex.split
struct.unpack struct.pack struct.calcsize csv.reader csv.DictReader zipfile.ZipFile
gzip.open bz2.open tarfile.open io.BytesIO io.StringIO io.open urllib.request.urlopen
statistics.mean_ operator.itemgetter operator.attrgetter datetime.timedelta pathlib.Path
pathlib.PurePath shutil.which multiprocessing.cpu_count configparser.ConfigParser
warnings.catch_warnings sys.exc_info traceback.format_exc importlib.util.find_spec
"""
)
_NONE = words(
    """
os.makedirs os.mkdir os.remove os.rename os.replace os.rmdir os.chdir os.system os.unlink
os.symlink os.environ.setdefault os.environ.update os.putenv os.chmod shutil.copy
shutil.copyfile shutil.rmtree shutil.move shutil.copytree shutil.copy2 logging.basicConfig
logging.info logging.debug logging.warning logging.error logging.critical logging.exception
logging.disable logging.captureWarnings warnings.filterwarnings warnings.warn
warnings.simplefilter time.sleep gc.collect gc.disable gc.enable signal.signal
atexit.register sys.path.append sys.path.insert sys.stdout.flush sys.stdout.write
sys.stderr.write sys.setrecursionlimit random.seed faulthandler.enable traceback.print_exc
pprint.pprint multiprocessing.freeze_support multiprocessing.set_start_method
resource.setrlimit os.environ.__setitem__ csv.field_size_limit
"""
)
_CLOCKS = words(
    """
time.time time.perf_counter time.monotonic time.process_time time.clock time.strftime
time.localtime time.ctime time.time_ns datetime.datetime.now datetime.datetime.utcnow
datetime.datetime.today datetime.date.today datetime.now timeit.default_timer os.getpid
os.urandom uuid.uuid4 uuid.uuid1 secrets.token_hex socket.gethostname time.gmtime
"""
)
_MATH = """
sqrt exp log log2 log10 ceil floor pow sin cos tan fabs isnan isinf isfinite tanh atan2
radians degrees hypot gcd erf fmod trunc log1p expm1 prod copysign
"""
_DRAWS = """
random randint uniform gauss choice choices sample randrange normalvariate getrandbits
betavariate expovariate triangular
"""

ROWS = (
    Row(" ".join(w for w in _UNIFORM if not w.endswith("_")), uniform),
    Row(" ".join(_NONE), none),
    Row(" ".join(_CLOCKS), per_rank("a clock or a number of the process")),
    Row(" ".join(f"math.{w}" for w in _MATH.split()), number),
    Row(" ".join(f"random.{w}" for w in _DRAWS.split()), random_number),
    Row("random.shuffle", none),
    Row("random.Random", uniform),
    Row("sys.exit os._exit os.abort", ended),
    Row("os.environ.get os.getenv os.environ.__getitem__", environment),
    Row("argparse.ArgumentParser configargparse.ArgumentParser jsonargparse.ArgumentParser", lambda s: s.ref("parser")),
    Row("argparse.Namespace types.SimpleNamespace", namespace),
    Row("functools.partial functools.partialmethod", partial),
    Row("functools.wraps", wraps),
    Row("""
dpmigrate.identity functools.lru_cache functools.cache functools.total_ordering typing.cast
abc.abstractmethod
""", identity),
    Row("functools.reduce", lambda s: s.m.call(s.get(0) or NOTHING, Arguments([s.get(2) or s.m.elements(s.get(1) or NOTHING, s.node, s.frame), s.m.elements(s.get(1) or NOTHING, s.node, s.frame)]), s.node, s.frame)),
    Row("collections.defaultdict", default_dict),
    Row("collections.Counter", counter),
    Row("collections.OrderedDict", lambda s: _dictionary(s)),
    Row("collections.deque", collected("list")),
    Row("collections.namedtuple", named_tuple),
    Row("itertools.chain itertools.chain.from_iterable", chained),
    Row("itertools.product itertools.combinations itertools.permutations itertools.zip_longest", product),
    Row("itertools.cycle itertools.islice itertools.tee itertools.repeat", wrapped),
    Row("copy.deepcopy copy.copy", copied),
    Row("""
json.load json.loads pickle.load pickle.loads yaml.safe_load yaml.load yaml.full_load
toml.load tomllib.load
""", loaded),
    Row("json.dump pickle.dump yaml.dump toml.dump yaml.safe_dump", saved),
    Row("threading.Thread multiprocessing.Process", process_started),
    Row("importlib.import_module builtins.__import__", import_by_name),
    Row("""
csv.writer csv.DictWriter logging.getLogger logging.StreamHandler logging.FileHandler
logging.Formatter
""", lambda s: s.ref("writer")),
    Row("statistics.mean statistics.stdev statistics.median", elementwise),
    Row("contextlib.nullcontext contextlib.suppress contextlib.ExitStack contextlib.redirect_stdout", lambda s: s.ref("context")),
    Row("""
threading.Lock threading.RLock queue.Queue multiprocessing.Queue multiprocessing.Manager
threading.Event
""", lambda s: s.ref("opaque")),
)  # fmt: skip
FUNCTIONS = table(ROWS)


def _dictionary(site: Site) -> Value:
    from dpmigrate.library.builtins import dictionary

    return dictionary(site)


_TEXT = """
format join split strip replace lower upper startswith endswith lstrip rstrip encode decode
title zfill ljust rjust splitlines isdigit find count partition rsplit capitalize center
casefold rfind removeprefix removesuffix items keys values get exists mkdir is_file is_dir
glob rglob resolve with_suffix joinpath read_text open iterdir absolute relative_to as_posix
index total_seconds strftime hexdigest parse_args isoformat group groups expanduser
"""


def text_method(site: Site) -> Value | None:
    """A method of a text: made of what it is given."""
    if site.word in ("split", "splitlines", "partition", "rsplit") and site.receiver is not None:
        return SETTING
    operands = [v for v in site.all() if site.flat(v)]
    if not operands:
        first = known(site.get(0) or NOTHING)
        if site.word in ("lower", "upper", "strip") and isinstance(first, str):
            made = Const("str", getattr(first, site.word)())
            return value(made) if isinstance(site.receiver, Const) else value(Setting("", made))
        return SETTING
    return site.m.text([*site.all()], site.node)


OF_KIND: dict[tuple[str, str], Row] = {
    ("parser", "add_argument"): Row("", option_added),
    ("parser", "add_argument_group"): Row("", group_added),
    ("parser", "add_mutually_exclusive_group"): Row("", group_added),
    ("parser", "add_subparsers"): Row("", group_added),
    ("parser", "add_parser"): Row("", group_added),
    ("parser", "set_defaults"): Row("", defaults_set),
    ("parser", "parse_args"): Row("", parsed),
    ("parser", "parse_known_args"): Row("", parsed),
    ("tuple class", "__call__"): Row("", tuple_made),
    ("namespace", "__getitem__"): Row("", namespace_item),
    ("namespace", "__iter__"): Row("", namespace_elements),
    ("file", "__enter__"): Row("", same),
    ("file", "__exit__"): Row("", none),
    ("context", "__enter__"): Row("", same),
    ("context", "__exit__"): Row("", none),
    **{("file", w): Row("", written) for w in ("write", "writelines", "flush", "close")},
    **{("file", w): Row("", uniform) for w in ("read", "readlines", "readline", "__iter__")},
    **{("writer", w): Row("", written) for w in (
        "writerow", "writerows", "writeheader", "info", "debug", "warning", "error", "setLevel", "addHandler",
        "setFormatter", "log", "critical", "exception", "warn",
    )},
    **{(k, w): Row("", text_method) for k in ("str", "text", "setting") for w in _TEXT.split()},
}  # fmt: skip
ATTRIBUTES: dict[tuple[str, str], Row] = {}
