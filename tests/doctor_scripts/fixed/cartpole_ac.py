import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical


class Corridor:
    """Walk right along a corridor of ten cells; reward at the end."""

    def __init__(self, length=10):
        self.length = length

    def reset(self):
        self.pos = self.length // 2
        self.t = 0
        return self.observe()

    def observe(self):
        return torch.tensor([self.pos / self.length, self.t / 20.0])

    def step(self, action):
        self.pos += 1 if action == 1 else -1
        self.t += 1
        done = self.pos <= 0 or self.pos >= self.length or self.t >= 20
        reward = 1.0 if self.pos >= self.length else -0.05
        return self.observe(), reward, done


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, n_out))


class ActorCritic:
    def __init__(self, gamma=0.98):
        self.gamma = gamma
        self.actor = mlp(2, 2)
        self.critic = mlp(2, 1)
        self.actor_optimizer = optim.Adam(self.actor.parameters(), lr=3e-3)
        self.critic_optimizer = optim.Adam(self.critic.parameters(), lr=1e-2)

    def act(self, obs):
        dist = Categorical(logits=self.actor(obs))
        action = dist.sample()
        return action.item(), dist.log_prob(action)

    def learn(self, log_probs, states, rewards):
        returns = []
        g = 0.0
        for r in reversed(rewards):
            g = r + self.gamma * g
            returns.insert(0, g)
        returns = torch.tensor(returns)
        values = self.critic(torch.stack(states)).squeeze(-1)
        advantage = returns - values

        critic_loss = advantage.pow(2).mean()
        actor_loss = -(torch.stack(log_probs) * advantage.detach()).mean()

        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()

        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()
        return actor_loss.item(), critic_loss.item()


def main():
    torch.manual_seed(7)
    env, agent = Corridor(), ActorCritic()
    for episode in range(25):
        obs, done = env.reset(), False
        log_probs, states, rewards = [], [], []
        while not done:
            action, log_prob = agent.act(obs)
            states.append(obs)
            obs, reward, done = env.step(action)
            log_probs.append(log_prob)
            rewards.append(reward)
        losses = agent.learn(log_probs, states, rewards)
        if episode % 5 == 0:
            print(f"episode {episode}: reward {sum(rewards):.2f} losses {losses}")


if __name__ == "__main__":
    main()
