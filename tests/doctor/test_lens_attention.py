"""Softmaxes over the wrong dim: what is found, with its correction, and near misses that are right."""

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
