"""The libraries whose functions and objects only compute from what they are given, by prefix.

What of them reads or writes files is told by the names of functions (see ``pure``); what draws
random numbers, and what shows what it is given, is told here.
"""

from __future__ import annotations

from dpmigrate.execution.values import NOTHING, Data, Value, const
from dpmigrate.library.constructors import collected
from dpmigrate.library.effects import same
from dpmigrate.library.pure import FAMILIES, Family, computed
from dpmigrate.library.sites import Row, Site, prefixed

_PY = "https://docs.python.org/3/library/"
_PLAIN = {
    # images
    "PIL": "https://pillow.readthedocs.io/en/stable/reference/",
    "cv2": "https://docs.opencv.org/4.x/",
    "skimage": "https://scikit-image.org/docs/stable/api/api.html",
    "imageio": "https://imageio.readthedocs.io/en/stable/reference/",
    "tifffile": "https://github.com/cgohlke/tifffile",
    "SimpleITK": "https://simpleitk.readthedocs.io/",
    "nibabel": "https://nipy.org/nibabel/api.html",
    "pydicom": "https://pydicom.github.io/pydicom/stable/reference/",
    "rasterio": "https://rasterio.readthedocs.io/en/stable/api/",
    "shapely": "https://shapely.readthedocs.io/en/stable/reference.html",
    "geopandas": "https://geopandas.org/en/stable/docs/reference.html",
    "pycocotools": "https://github.com/cocodataset/cocoapi",
    "decord": "https://github.com/dmlc/decord",
    "av": "https://pyav.org/docs/stable/",
    "trimesh": "https://trimesh.org/",
    "open3d": "https://www.open3d.org/docs/release/",
    "plyfile": "https://github.com/dranjan/python-plyfile",
    # sound
    "librosa": "https://librosa.org/doc/latest/",
    "soundfile": "https://python-soundfile.readthedocs.io/",
    "python_speech_features": "https://python-speech-features.readthedocs.io/",
    "pywt": "https://pywavelets.readthedocs.io/",
    "torchaudio.info": "https://docs.pytorch.org/audio/stable/",
    # tables and files
    "pandas": "https://pandas.pydata.org/docs/reference/",
    "polars": "https://docs.pola.rs/api/python/stable/reference/",
    "pyarrow": "https://arrow.apache.org/docs/python/api.html",
    "h5py": "https://docs.h5py.org/en/stable/",
    "zarr": "https://zarr.readthedocs.io/",
    "lmdb": "https://lmdb.readthedocs.io/",
    "netCDF4": "https://unidata.github.io/netcdf4-python/",
    "xarray": "https://docs.xarray.dev/en/stable/api.html",
    "msgpack": "https://msgpack-python.readthedocs.io/",
    "orjson": "https://github.com/ijl/orjson",
    "toml": "https://github.com/uiri/toml",
    "yaml": "https://pyyaml.org/wiki/PyYAMLDocumentation",
    "ruamel": "https://yaml.dev/doc/ruamel.yaml/",
    "jsonlines": "https://jsonlines.readthedocs.io/",
    "openpyxl": "https://openpyxl.readthedocs.io/",
    "bs4": "https://www.crummy.com/software/BeautifulSoup/bs4/doc/",
    "lxml": "https://lxml.de/apidoc/",
    "requests": "https://requests.readthedocs.io/",
    # texts
    "nltk": "https://www.nltk.org/api/nltk.html",
    "spacy": "https://spacy.io/api",
    "sentencepiece": "https://github.com/google/sentencepiece",
    "tokenizers": "https://huggingface.co/docs/tokenizers/",
    "tiktoken": "https://github.com/openai/tiktoken",
    "jieba": "https://github.com/fxsjy/jieba",
    "sacremoses": "https://github.com/hplt-project/sacremoses",
    "sacrebleu": "https://github.com/mjpost/sacrebleu",
    "rouge": "https://github.com/pltrdy/rouge",
    "rouge_score": "https://github.com/google-research/google-research/tree/master/rouge",
    "editdistance": "https://github.com/roy-ht/editdistance",
    "Levenshtein": "https://rapidfuzz.github.io/Levenshtein/",
    "jiwer": "https://jitsi.github.io/jiwer/",
    "regex": "https://github.com/mrabarnett/mrab-regex",
    "ftfy": "https://ftfy.readthedocs.io/",
    "unidecode": "https://github.com/avian2/unidecode",
    "emoji": "https://carpedm20.github.io/emoji/docs/",
    "inflect": "https://github.com/jaraco/inflect",
    "pypinyin": "https://pypinyin.readthedocs.io/",
    # numbers
    "networkx": "https://networkx.org/documentation/stable/reference/",
    "sympy": "https://docs.sympy.org/",
    "statsmodels": "https://www.statsmodels.org/stable/api.html",
    "rdkit": "https://www.rdkit.org/docs/",
    "ase": "https://wiki.fysik.dtu.dk/ase/",
    "faiss": "https://faiss.ai/",
    "natsort": "https://natsort.readthedocs.io/",
    "more_itertools": "https://more-itertools.readthedocs.io/",
    # words on the screen, versions, settings
    "termcolor": "https://github.com/termcolor/termcolor",
    "colorama": "https://github.com/tartley/colorama",
    "tabulate": "https://github.com/astanin/python-tabulate",
    "texttable": "https://github.com/foutaise/texttable",
    "prettytable": "https://github.com/prettytable/prettytable",
    "packaging": "https://packaging.pypa.io/",
    "dateutil": "https://dateutil.readthedocs.io/",
    "pytz": "https://pythonhosted.org/pytz/",
    "humanize": "https://humanize.readthedocs.io/",
    "omegaconf": "https://omegaconf.readthedocs.io/",
    "dotenv": "https://github.com/theskumar/python-dotenv",
    "environs": "https://github.com/sloria/environs",
    "mmengine.config": "https://mmengine.readthedocs.io/en/latest/api/config.html",
    # the standard library
    "xml": _PY + "xml.html",
    "urllib.parse": _PY + "urllib.parse.html",
    "unicodedata": _PY + "unicodedata.html",
    "difflib": _PY + "difflib.html",
    "html": _PY + "html.html",
    "fractions": _PY + "fractions.html",
    "decimal": _PY + "decimal.html",
    "calendar": _PY + "calendar.html",
    "cmath": _PY + "cmath.html",
    "array": _PY + "array.html",
    "distutils": _PY + "distutils.html",
    "zlib": _PY + "zlib.html",
    "base64": _PY + "base64.html",
    "binascii": _PY + "binascii.html",
    "codecs": _PY + "codecs.html",
    "hashlib": _PY + "hashlib.html",
    "hmac": _PY + "hmac.html",
    "struct": _PY + "struct.html",
    "configparser": _PY + "configparser.html",
    "csv": _PY + "csv.html",
    "textwrap": _PY + "textwrap.html",
    "shlex": _PY + "shlex.html",
    "fnmatch": _PY + "fnmatch.html",
    "statistics": _PY + "statistics.html",
    "string": _PY + "string.html",
    "re": _PY + "re.html",
    "platform": _PY + "platform.html",
    "locale": _PY + "locale.html",
    "email": _PY + "email.html",
    "importlib.metadata": _PY + "importlib.metadata.html",
    "importlib.resources": _PY + "importlib.resources.html",
    "pkg_resources": "https://setuptools.pypa.io/en/latest/pkg_resources.html",
}
#: functions that draw from numpy's stream unless they are given a ``random_state``
_STOCHASTIC = (
    "fit", "split", "sample", "rvs", "resample", "shuffle", "make_", "cross_val", "k_means",
    "kmeans", "permutation", "mutual_info", "dual_annealing", "differential_evolution",
    "basinhopping", "bootstrap", "random",
)  # fmt: skip
_NUMPY = {
    "sklearn": "https://scikit-learn.org/stable/glossary.html#term-random_state",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/",
    "imblearn": "https://imbalanced-learn.org/stable/references/",
    "umap": "https://umap-learn.readthedocs.io/",
    "hdbscan": "https://hdbscan.readthedocs.io/",
    "xgboost": "https://xgboost.readthedocs.io/",
    "lightgbm": "https://lightgbm.readthedocs.io/",
    "gensim": "https://radimrehurek.com/gensim/apiref.html",
}
_SHOWING = {
    "matplotlib": "https://matplotlib.org/stable/api/",
    "pylab": "https://matplotlib.org/stable/api/",
    "seaborn": "https://seaborn.pydata.org/api.html",
    "plotly": "https://plotly.com/python-api-reference/",
    "bokeh": "https://docs.bokeh.org/en/latest/docs/reference.html",
    "altair": "https://altair-viz.github.io/user_guide/api.html",
    "mpl_toolkits": "https://matplotlib.org/stable/api/toolkits/",
}

FAMILIES.update({name: Family(source) for name, source in _PLAIN.items()})
FAMILIES.update(
    {name: Family(source, "numpy", _STOCHASTIC) for name, source in _NUMPY.items()}
)
FAMILIES.update({name: Family(source, shows=True) for name, source in _SHOWING.items()})


def drawn_on(site: Site) -> Value:
    """``cv2.rectangle(image, …)``: the image is changed, and given back."""
    made = computed(site)
    target = next(iter(getattr(site.node, "args", ())), None)
    moving = any(isinstance(a, Data) for a in made)
    if moving and target is not None and type(target).__name__ in ("Name", "Attribute"):
        site.m.assign(target, made, site.node, site.frame)
    return made


def opened(site: Site) -> Value:
    """``h5py.File(path, "w")``: a file with parts."""
    site.event("open", path=site.get(0) or NOTHING, mode=site.get(1, "mode") or const("r"))
    return computed(site)


ROWS = (
    Row(prefixed("cv2.", """
rectangle circle line putText polylines fillPoly fillConvexPoly drawContours ellipse arrowedLine
drawMarker drawKeypoints
"""), drawn_on, source=_PLAIN["cv2"]),
    # where plots will stand, and how large: numbers that nobody reads
    Row(prefixed("matplotlib.pyplot.", """
subplots subplot subplot_mosaic subplot2grid figure axes subplots_adjust tight_layout
switch_backend close
""") + " matplotlib.gridspec.GridSpec", computed, source=_SHOWING["matplotlib"]),
    # what is drawn with it is drawn into the image
    Row("PIL.ImageDraw.Draw", same, source=_PLAIN["PIL"]),
    Row("h5py.File pandas.HDFStore pandas.ExcelWriter cv2.VideoWriter imageio.get_writer zarr.open",
        opened, source=_PLAIN["h5py"]),
    Row("natsort.natsorted natsort.os_sorted natsort.humansorted natsort.realsorted",
        collected("list"), source=_PLAIN["natsort"]),
)  # fmt: skip
