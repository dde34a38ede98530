"""The losses that torch itself has: which there are, and what their constructors and functions are given, then and later."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from dpmigrate.facts.roles import Roles

#: loss modules of ``torch.nn``
MODULES = frozenset(
    [
        "L1Loss",
        "NLLLoss",
        "PoissonNLLLoss",
        "GaussianNLLLoss",
        "KLDivLoss",
        "MSELoss",
        "BCELoss",
        "BCEWithLogitsLoss",
        "HingeEmbeddingLoss",
        "SmoothL1Loss",
        "HuberLoss",
        "SoftMarginLoss",
        "CrossEntropyLoss",
        "MultiLabelSoftMarginLoss",
        "CosineEmbeddingLoss",
        "MultiMarginLoss",
        "MultiLabelMarginLoss",
        "MarginRankingLoss",
        "TripletMarginLoss",
        "CTCLoss",
        "TripletMarginWithDistanceLoss",
        "NLLLoss2d",
    ]
)
#: their functions in ``torch.nn.functional``
FUNCTIONS = frozenset(
    [
        "l1_loss",
        "nll_loss",
        "poisson_nll_loss",
        "gaussian_nll_loss",
        "kl_div",
        "mse_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "smooth_l1_loss",
        "huber_loss",
        "soft_margin_loss",
        "cross_entropy",
        "multilabel_soft_margin_loss",
        "cosine_embedding_loss",
        "multi_margin_loss",
        "hinge_embedding_loss",
        "margin_ranking_loss",
        "triplet_margin_loss",
        "ctc_loss",
        "multilabel_margin_loss",
    ]
)
UNWEIGHTED = frozenset({"CTCLoss", "ctc_loss"})  # divides by target lengths as well


def known_arguments(name: str, call: bool) -> int:
    """How many positional arguments cannot be a reduction: prediction, target, and a weight where there is one; ``call``: of the function."""
    weighted = "cross" in name or "nll" in name or name.startswith(("BCE", "CrossEntropy", "NLL"))
    more = 2 if name in ("ctc_loss", "triplet_margin_loss") else int(name in ("margin_ranking_loss", "cosine_embedding_loss", "gaussian_nll_loss"))
    return (2 if call else 0) + int(weighted) + more


def given_later(roles: Roles, made: ast.Call) -> dict[str, list[ast.expr]]:
    """What the program gives to attributes of the loss object once it is built: ``criterion.pos_weight = …``."""
    found: dict[str, list[ast.expr]] = {}
    for name in ("weight", "pos_weight", "ignore_index", "reduction", "size_average"):
        for n in roles.names.attributes(name):
            stmt = roles.names.parent[n]
            if isinstance(stmt, ast.Assign | ast.AnnAssign) and stmt.value is not None and stmt.value is not n:
                if any(v.node is made for v in roles.values.eval(n.value)):
                    found.setdefault(name, []).append(stmt.value)
    return found


#: models of transformers whose loss is a mean over the labels of tokens: each is held against its own place, or against the one before
_TOKENS = ("ForMaskedLM", "ForTokenClassification", "ForConditionalGeneration", "ForSeq2SeqLM", "EncoderDecoderModel")
_NEXT_TOKENS = ("LMHeadModel", "ForCausalLM")


def of_labels(qual: str) -> Literal["own", "next"] | None:
    """Which labels the loss of a model of transformers is a mean over: of the tokens, or of those that follow; None for other losses.

    (https://huggingface.co/docs/transformers/main_classes/output)
    """
    if not qual.startswith("transformers."):
        return None
    qual = qual.removesuffix(".from_pretrained").removesuffix(".from_config")
    if qual.endswith(_NEXT_TOKENS):
        return "next"
    return "own" if qual.endswith(_TOKENS) else None
