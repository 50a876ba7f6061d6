"""Softmaxes over the wrong dim, and masks after them: what is found, its correction, and near misses that are right."""

import pytest
from under_the_doctor import ENGINES, findings_of

MODELS = """
model, pool, head, mix = nn.Linear(4, 3), nn.Linear(4, 1), nn.Linear(4, 3), nn.Linear(4, 4)
x, y, seq = torch.randn(8, 4), torch.tensor([0, 1, 2, 0, 1, 1, 2, 0]), torch.randn(8, 5, 4)
similar, rows = mix(x) @ x.T, torch.arange(8)
"""
BOTH = pytest.mark.parametrize("engine", ENGINES)


def found_in(loss: str, engine: str) -> list:
    return findings_of(f"{MODELS}loss = {loss}\nloss.backward()\n", engine)


@BOTH
@pytest.mark.parametrize(
    "loss",
    [
        "F.nll_loss(torch.log(torch.softmax(model(x), DIM)), y)",
        "-F.log_softmax(model(x), DIM).gather(1, y[:, None]).mean()",
        "-F.log_softmax(model(x), dim=DIM)[rows, y].mean()",
        "-torch.softmax(model(x), dim=DIM)[rows, y].log().mean()",
        "-model(x).softmax(DIM).gather(1, y[:, None]).log().mean()",
        "-(F.one_hot(y, 3).float() * F.log_softmax(model(x), dim=DIM)).sum(1).mean()",
        "-torch.distributions.Categorical(torch.softmax(model(x), dim=DIM)).log_prob(y).mean()",
        "F.cross_entropy(head((torch.softmax(pool(seq), dim=DIM) * seq).sum(1)), y)",
        "F.cross_entropy(torch.relu(head((pool(seq).squeeze(-1).softmax(DIM)[..., None] * seq).sum(dim=1))), y)",
        "F.cross_entropy(head(torch.bmm(torch.softmax(pool(seq), dim=DIM).transpose(1, 2), seq).squeeze(1)), y)",
        "F.cross_entropy(head(torch.einsum('bt,btd->bd', torch.softmax(pool(seq)[..., 0], DIM), seq)), y)",
    ],
)
def test_a_softmax_over_the_batch_gets_the_dim_that_its_reader_takes(loss, engine):
    (found,) = found_in(loss.replace("DIM", "0"), engine)
    assert found.rule == "BL748" and found.place.line == 5
    assert found.corrected == f"loss = {loss.replace('DIM', '1')}"
    assert found_in(loss.replace("DIM", "1"), engine) == []


@BOTH
@pytest.mark.parametrize(
    "loss",
    [
        "F.nll_loss(F.log_softmax(similar, dim=0), rows)",  # both directions of a contrastive loss
        "F.nll_loss(F.log_softmax(similar, dim=0).T, rows)",
        "-F.log_softmax(similar, dim=0)[rows, rows].mean()",
        "F.nll_loss(model(x).T.log_softmax(dim=0).T, y)",  # the classes lie first
        "-torch.distributions.Categorical(torch.softmax(model(x[0]), dim=0)).log_prob(y[0])",  # one state
        "F.cross_entropy(head((torch.softmax(pool(seq.transpose(0, 1)), 0) * seq.transpose(0, 1)).sum(0)), y)",
        "F.cross_entropy(head((torch.softmax(mix.bias[:, None, None], 0) * seq[:, :4].transpose(0, 1)).sum(0)), y)",
        "F.mse_loss((torch.softmax(pool(x), dim=0) * head(x)).sum(1), y.float())",  # weights of samples
        "F.mse_loss(torch.einsum('no,nd->n', torch.softmax(pool(x), dim=0), head(x)), y.float())",
        "(torch.softmax(model(x), dim=0).T @ head(x)).square().mean()",  # slots that take from all tokens
        "(torch.softmax(pool(seq), 0) * seq).sum(1).square().mean()",  # no loss of samples
    ],
)
def test_a_softmax_over_a_first_dim_that_is_no_batch_of_classes_is_silent(loss, engine):
    assert found_in(loss, engine) == []


ATTENTION = """
look, score = nn.Linear(4, 4), nn.Linear(4, 1)
x = torch.randn(3, 5, 4)
scores, heads = look(x) @ x.transpose(1, 2), score(x).squeeze(-1)
past, shown = torch.tril(torch.ones(5, 5)), torch.arange(5) < torch.tensor([5, 3, 2])[:, None]
"""


def found_in_attention(lines: str, engine: str) -> list:
    return findings_of(f"{ATTENTION}{lines}\nout.square().mean().backward()\n", engine)


@BOTH
@pytest.mark.parametrize(
    ("masking", "use"),
    [
        ("w = torch.softmax(scores, -1) * past", "w @ x"),
        ("w = scores.softmax(dim=-1).masked_fill(past == 0, 0.0)", "torch.bmm(F.dropout(w, 0.1), x)"),
        ("w = torch.softmax(scores, -1) * shown[:, None, :].float()", "torch.matmul(w, x)"),
        ("w = torch.softmax(scores, -1); w = torch.where(shown[:, None], w, torch.zeros_like(w))",
         "torch.einsum('bqk,bkd->bqd', w, x)"),
        ("w = torch.softmax(heads, dim=1) * shown", "(w.unsqueeze(-1) * x).sum(1)"),
        ("w = torch.softmax(heads[..., None], dim=1) * shown[..., None]", "(w * x).sum(dim=1)"),
        ("w = torch.softmax(scores.view(3, 1, 5, 5), dim=-1) * past.bool()", "w @ x[:, None]"),
    ],
)  # fmt: skip
def test_a_mask_after_the_softmax_is_found_at_its_line(masking, use, engine):
    dim = 1 if "heads" in masking else -1
    (found,) = found_in_attention(f"{masking}\nout = {use}", engine)
    assert found.rule == "BL787" and found.place.line == 6
    assert found_in_attention(f"{masking}\nw = w / w.sum({dim}, keepdim=True)\nout = {use}", engine) == []


@BOTH
@pytest.mark.parametrize(
    "lines",
    [
        "w = torch.softmax(scores, -1) * past\nout = (w @ x) / w.sum(-1, keepdim=True)",
        "w = torch.softmax(scores, -1) * past\nout = F.normalize(w, p=1, dim=-1) @ x",
        "w = torch.softmax(scores.masked_fill(past == 0, float('-inf')), -1) * past\nout = w @ x",
        "none = past.clone()\nnone[0] = 0\n"  # a query without a key
        "out = torch.softmax(scores.masked_fill(none == 0, -1e9), -1).masked_fill(none == 0, 0) @ x",
        "drop = torch.rand(3, 1, 2) > 0.5\nout = (torch.softmax(scores[..., :2], -1) * drop.float()) @ x[:, :2]",
        "out = (torch.softmax(scores, -1) * torch.bernoulli(torch.full((5, 5), 0.9))) @ x",
        "out = F.dropout(torch.softmax(scores, -1), 0.3) @ x",
        "out = (torch.softmax(scores, -1) * shown[:, :, None]) @ x",  # queries
        "out = (torch.softmax(scores, -1) * torch.tensor([1.0, 0.0, 1.0])[:, None, None]) @ x",  # heads
        "out = (torch.softmax(scores, -1) * torch.sigmoid(score(x))) @ x",  # a gate
        "p = torch.softmax(look(x[:, 0])[:, :2], -1)\n"  # an expert
        "best = torch.zeros(3, 2).scatter(1, p.argmax(1, keepdim=True), 1.0)\n"
        "out = ((p * best).unsqueeze(-1) * x[:, :2]).sum(1)",
        "p = torch.softmax(scores, -1) * past\nout = (p * torch.log(p + 1e-6)).sum(-1)",
    ],
)
def test_other_factors_of_attention_weights_are_silent(lines, engine):
    assert found_in_attention(lines, engine) == []
