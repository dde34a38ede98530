"""The lines beside a program that start it: which are found, and what they become."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpmigrate.starts import starts

RUN = "torchrun --standalone --nproc-per-node"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in (".git", "src/deep", "other", "logs.sh"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("train.py", "src/train.py", "src/deep/fit.py"):
        (tmp_path / name).write_text("")
    return tmp_path


def found(repository: Path, text: str | bytes, file: str = "run.sh", script: str = "train.py") -> list[str]:
    (repository / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    return [s.command for s in starts(repository / script)]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("python test.py", id="another program"),
        pytest.param("python other/train.py", id="one of the same name"),
        pytest.param("cd other && python train.py", id="in another folder"),
        pytest.param("cd src; python train.py", id="another folder's program of this name"),
        pytest.param("# python train.py", id="a comment"),
        pytest.param(f"{RUN}=4 train.py", id="torchrun already"),
        pytest.param("accelerate launch train.py", id="another launcher"),
        pytest.param("python -c 'import train' train.py", id="code on the command line"),
        pytest.param("python -m pytest train.py", id="a module that is given the file"),
        pytest.param("mypython train.py", id="a word that ends like python"),
        pytest.param("python", id="no program"),
        pytest.param("python -m", id="no module"),
        pytest.param("python -u\n", id="flags only"),
        pytest.param("echo train.py", id="no python"),
        pytest.param("python ~nobody/train.py", id="a home folder"),
    ],
)
def test_lines_that_start_something_else(repository: Path, line: str) -> None:
    assert found(repository, line) == []


@pytest.mark.parametrize(
    ("line", "command"),
    [
        pytest.param("python train.py --lr 0.1", f"{RUN}=NUMBER_OF_GPUS train.py --lr 0.1", id="arguments"),
        pytest.param("python3 -u ./train.py", f"{RUN}=NUMBER_OF_GPUS ./train.py", id="unbuffered"),
        pytest.param("python -m train --lr 1", f"{RUN}=NUMBER_OF_GPUS -m train --lr 1", id="as a module"),
        pytest.param("CUDA_VISIBLE_DEVICES=0,1 python train.py", f"CUDA_VISIBLE_DEVICES=0,1 {RUN}=2 train.py", id="devices named"),
        pytest.param("export CUDA_VISIBLE_DEVICES='2,3,5'\npython train.py", f"{RUN}=3 train.py", id="devices exported"),
        pytest.param("CUDA_VISIBLE_DEVICES=$1 python train.py", f"CUDA_VISIBLE_DEVICES=$1 {RUN}=NUMBER_OF_GPUS train.py", id="devices from outside"),
        pytest.param("CUDA_VISIBLE_DEVICES=0,1 python test.py\npython train.py", f"{RUN}=NUMBER_OF_GPUS train.py", id="devices of another line"),
        pytest.param('nohup python train.py --name "a b" > log 2>&1 &', f'nohup {RUN}=NUMBER_OF_GPUS train.py --name "a b" > log 2>&1 &', id="the rest stays"),
        pytest.param("python train.py \\\n  --lr 1 \\\n  --wd 2", f"{RUN}=NUMBER_OF_GPUS train.py --lr 1 --wd 2", id="several lines"),
        pytest.param("python 'train.py'", f"{RUN}=NUMBER_OF_GPUS 'train.py'", id="quoted"),
        pytest.param("python $ROOT/train.py", f"{RUN}=NUMBER_OF_GPUS $ROOT/train.py", id="a folder in a variable"),
        pytest.param("cd $HERE && python train.py", f"cd $HERE && {RUN}=NUMBER_OF_GPUS train.py", id="cd to a folder in a variable"),
        pytest.param("cd src && cd .. && python train.py", f"cd src && cd .. && {RUN}=NUMBER_OF_GPUS train.py", id="there and back"),
        pytest.param("python -W ignore -B train.py", f"{RUN}=NUMBER_OF_GPUS --no-python python -W ignore -B train.py", id="flags of Python"),
        pytest.param(
            "env/bin/python -O train.py",
            "env/bin/python -m torch.distributed.run --standalone --nproc-per-node=NUMBER_OF_GPUS --no-python env/bin/python -O train.py",
            id="another Python with flags",
        ),
        pytest.param("$PYTHON train.py", "$PYTHON -m torch.distributed.run --standalone --nproc-per-node=NUMBER_OF_GPUS train.py", id="Python in a variable"),
        pytest.param("python train.py && python train.py --test", f"{RUN}=NUMBER_OF_GPUS train.py && {RUN}=NUMBER_OF_GPUS train.py --test", id="twice"),
        pytest.param(
            "python -m torch.distributed.launch --nproc_per_node=4 --master_port 29501 --use_env train.py --lr 1",
            "torchrun --standalone --nproc_per_node=4 train.py --lr 1",
            id="the old launcher",
        ),
        pytest.param(
            "python -m torch.distributed.launch --nproc-per-node 4 --nnodes 2 --node_rank=$R --master_addr host train.py",
            "torchrun --nproc-per-node 4 --nnodes 2 --node_rank=$R --master_addr host train.py",
            id="the old launcher on several machines",
        ),
        pytest.param("python -m torch.distributed.launch --module train", f"{RUN}=NUMBER_OF_GPUS -m train", id="the old launcher with a module"),
    ],
)
def test_lines_become_torchruns_own(repository: Path, line: str, command: str) -> None:
    assert found(repository, line) == [command]


def test_no_rank_is_given_the_number_of_a_gpu(repository: Path) -> None:
    assert found(repository, "python train.py --device cuda:1 --out cuda_1") == [f"{RUN}=NUMBER_OF_GPUS train.py --device cuda --out cuda_1"]
    both = "python train.py --device cuda:0 && python train.py --device cuda:1"
    assert found(repository, both) == [f"{RUN}=NUMBER_OF_GPUS train.py --device cuda && {RUN}=NUMBER_OF_GPUS train.py --device cuda"]


def test_a_makefile_has_a_shell_for_each_line(repository: Path) -> None:
    text = "PY = python\nall:\n\t@cd src && python train.py\n\t-cd src && $(PYTHON) train.py $(ARGS)\n"
    assert found(repository, text, "Makefile", "src/train.py") == [
        f"cd src && {RUN}=NUMBER_OF_GPUS train.py",
        "cd src && $(PYTHON) -m torch.distributed.run --standalone --nproc-per-node=NUMBER_OF_GPUS train.py $(ARGS)",
    ]


def test_a_readme_is_read_where_it_shows_code(repository: Path) -> None:
    text = (
        "python train.py is how to train.\nRun `python train.py -a` or `python test.py`.\n```sh\n# python train.py -b\n$ python train.py -c \\\n-d\n```\n"
        "\n    python train.py -e\n$ python train.py -f\nthen python train.py -g\n"
    )
    (repository / "README.md").write_text(text)
    assert [(s.line, s.command[-2:]) for s in starts(repository / "train.py")] == [(2, "-a"), (5, "-d"), (9, "-e"), (10, "-f")]


def test_the_end_of_the_code_ends_a_line_that_would_go_on(repository: Path) -> None:
    (repository / "README.md").write_text("```\npython train.py -a \\\n  -b \\\n```\n**Then** train\n```\npython train.py -c\n```\n")
    assert [(s.line, s.command) for s in starts(repository / "train.py")] == [
        (2, f"{RUN}=NUMBER_OF_GPUS train.py -a -b"),
        (7, f"{RUN}=NUMBER_OF_GPUS train.py -c"),
    ]
    (repository / "README.md").unlink()
    assert found(repository, "python train.py -a \\\n-b \\") == [f"{RUN}=NUMBER_OF_GPUS train.py -a -b"]


def test_a_package_is_started_from_above_it(tmp_path: Path) -> None:
    (tmp_path / "proj").mkdir()
    for name, text in {"__init__": "", "__main__": "from . import net\n", "train": "from . import net\n"}.items():
        (tmp_path / "proj" / f"{name}.py").write_text(text)
    (tmp_path / "run.sh").write_text("python -m proj.train --lr 1\npython -m proj\npython -m proj.net\n")
    assert [s.command for s in starts(tmp_path / "proj" / "train.py")] == [f"{RUN}=NUMBER_OF_GPUS -m proj.train --lr 1"]
    assert [s.command for s in starts(tmp_path / "proj" / "__main__.py")] == [f"{RUN}=NUMBER_OF_GPUS -m proj"]


def test_the_folders_up_to_the_top_of_the_repository_are_looked_at(repository: Path) -> None:
    (repository.parent / "run.sh").write_text(f"python {repository.name}/src/deep/fit.py")
    (repository / "run.sh").write_text("cd src\npython deep/fit.py\n")
    (repository / "src" / "run.sh").write_text("python -m deep.fit")
    (repository / "src" / "deep" / "run.sh").write_text("python fit.py")
    assert [(Path(s.path).parent.name, s.command[len(RUN) - 6 :]) for s in starts(repository / "src" / "deep" / "fit.py")] == [
        ("deep", "r-node=NUMBER_OF_GPUS fit.py"),
        ("src", "r-node=NUMBER_OF_GPUS -m deep.fit"),
        (repository.name, "r-node=NUMBER_OF_GPUS deep/fit.py"),
    ]
    (repository / ".git").rmdir()  # no repository: the folder itself
    assert len(starts(repository / "src" / "deep" / "fit.py")) == 1


def test_a_result_in_another_file_is_started_in_its_place(repository: Path) -> None:
    (repository / "run.sh").write_text("python train.py\npython -m train\ncd other; python ../train.py -x\n")
    lines = [s.command for s in starts(repository / "train.py", repository / "other" / "new train.py")]
    assert lines == [
        f"{RUN}=NUMBER_OF_GPUS 'other/new train.py'",
        f"{RUN}=NUMBER_OF_GPUS 'other/new train.py'",
        f"cd other; {RUN}=NUMBER_OF_GPUS 'new train.py' -x",
    ]


def test_a_result_far_away_is_named_in_full(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (repository / "run.sh").write_text("python train.py\n")
    far = tmp_path_factory.mktemp("far") / "ddp.py"
    assert [s.command for s in starts(repository / "train.py", far)] == [f"{RUN}=NUMBER_OF_GPUS {far}"]


def test_paths_are_said_as_the_program_was(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "run.sh").write_text("python train.py")
    monkeypatch.chdir(repository / "src")
    assert [s.path for s in starts(Path("../train.py"))] == ["../run.sh"]
    assert [s.path for s in starts(repository / "train.py")] == [str(repository / "run.sh")]


def test_other_encodings_and_what_cannot_be_read_crash_nothing(repository: Path) -> None:
    for text in ("python train.py é\n".encode("latin-1"), "python train.py\n".encode("utf-16"), b"\xff\xfe\0\0python train.py", b"\0" * 99):
        assert len(found(repository, text)) <= 1
    assert found(repository, "python train.py é\n".encode("latin-1")) == [f"{RUN}=NUMBER_OF_GPUS train.py \ufffd"]
    (repository / "gone.sh").symlink_to("nothing")
    (repository / "big.sh").write_text("python train.py\n" * 50_000)
    assert len(starts(repository / "train.py")) == 1
    assert starts(repository / "none.py") == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_or_file_that_is_closed_is_passed_over(repository: Path) -> None:
    (repository / "run.sh").write_text("python train.py")
    (repository / "run.sh").chmod(0)
    assert starts(repository / "train.py") == ()


def test_a_file_that_goes_away_meanwhile(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "run.sh").write_text("python train.py")

    def gone(*_: object) -> bytes:
        raise FileNotFoundError

    monkeypatch.setattr("dpmigrate.reading.content", gone)
    assert starts(repository / "train.py") == ()
    monkeypatch.setattr(os, "scandir", gone)
    assert starts(repository / "train.py") == ()
