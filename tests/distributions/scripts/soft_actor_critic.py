"""The policy of SAC: a normal distribution squashed by tanh, with a cache so that log_prob is exact."""

import torch
from torch import nn
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import AffineTransform, TanhTransform

torch.manual_seed(3)


class Squashed(TransformedDistribution):
    def __init__(self, loc, scale):
        self.loc, self.scale = loc, scale
        super().__init__(Normal(loc, scale), [TanhTransform(cache_size=1), AffineTransform(0.0, 2.0, cache_size=1)])

    @property
    def mean(self):
        value = self.loc
        for transform in self.transforms:
            value = transform(value)
        return value


actor = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 4))
critic = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
temperature = torch.zeros((), requires_grad=True)
states = torch.randn(24, 3)
target = torch.stack([states[:, 0], -states[:, 1]], -1).tanh()
for_actor = torch.optim.Adam([*actor.parameters(), temperature], lr=0.01)
for_critic = torch.optim.Adam(critic.parameters(), lr=0.01)
for step in range(30):
    loc, log_scale = actor(states).chunk(2, -1)
    policy = Squashed(loc, log_scale.clamp(-5, 2).exp())
    actions = policy.rsample()
    log_prob = policy.log_prob(actions).sum(-1)
    rewards = -(actions.detach() - target).square().sum(-1)
    critic_loss = (critic(torch.cat([states, actions.detach()], -1)).squeeze(-1) - rewards).square().mean()
    for_critic.zero_grad()
    critic_loss.backward()
    for_critic.step()
    value = critic(torch.cat([states, actions], -1)).squeeze(-1)
    actor_loss = (temperature.exp().detach() * log_prob - value).mean()
    temperature_loss = -(temperature.exp() * (log_prob.detach() - 2)).mean()
    for_actor.zero_grad()
    (actor_loss + temperature_loss).backward()
    for_actor.step()
    if step % 10 == 9:
        print(f"{critic_loss.item():.3f} {actor_loss.item():.3f} {temperature.exp().item():.3f}")
print(policy.support, tuple(policy.batch_shape), [f"{one:.3f}" for one in policy.mean[0].tolist()])
