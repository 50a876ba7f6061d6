"""Counts and waiting times fitted by maximum likelihood: Gamma, LogNormal, Poisson, NegativeBinomial, StudentT."""

import torch
from torch.distributions import Gamma, LogNormal, NegativeBinomial, Poisson, StudentT, constraints, transform_to

torch.manual_seed(9)
waits, counts = Gamma(2.0, 0.5).sample((300,)), NegativeBinomial(4.0, torch.tensor(0.4)).sample((300,))
noisy = StudentT(3.0, 1.0, 0.5).sample((300,))
positive, unit = transform_to(constraints.positive), transform_to(constraints.unit_interval)


def fit(name, values, make, count):
    free = torch.zeros(count, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([free], max_iter=15, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        total = -make(*free).log_prob(values.double()).mean()
        total.backward()
        return total

    optimizer.step(loss)
    print(f"{name}: {loss().item():.4f}", type(make(*free)).__name__, [f"{one:.3f}" for one in free.tolist()])


fit("gamma", waits, lambda a, b: Gamma(positive(a), positive(b)), 2)
fit("log normal", waits, lambda a, b: LogNormal(a, positive(b)), 2)
fit("poisson", counts, lambda a: Poisson(positive(a)), 1)
fit("negative binomial", counts, lambda a, b: NegativeBinomial(positive(a), unit(b)), 2)
fit("student", noisy, lambda a, b, c: StudentT(positive(a), b, positive(c)), 3)
