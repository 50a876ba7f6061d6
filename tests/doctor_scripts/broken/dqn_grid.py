import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class QNetwork(nn.Module):
    def __init__(self, n_obs=2, n_actions=4):
        super().__init__()
        self.fc1 = nn.Linear(n_obs, 24)
        self.fc2 = nn.Linear(24, n_actions)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


def env_step(pos, action, size=4):
    x = min(max(pos[0] + MOVES[action][0], 0), size - 1)
    y = min(max(pos[1] + MOVES[action][1], 0), size - 1)
    done = (x, y) == (size - 1, size - 1)
    return (x, y), 1.0 if done else -0.05, done


def optimize(policy_net, target_net, optimizer, memory, batch_size=16, gamma=0.95):
    batch = random.sample(memory, batch_size)
    states, actions, rewards, next_states, dones = zip(*batch)
    states = torch.tensor(states, dtype=torch.float32) / 3
    next_states = torch.tensor(next_states, dtype=torch.float32) / 3
    actions = torch.tensor(actions).unsqueeze(1)
    rewards = torch.tensor(rewards)
    dones = torch.tensor(dones, dtype=torch.float32)

    q = policy_net(states).gather(1, actions).squeeze(1)
    next_q = target_net(next_states).max(1).values  # here
    target = rewards + gamma * next_q * (1 - dones)
    loss = F.smooth_l1_loss(q, target)

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    random.seed(0)
    torch.manual_seed(0)
    policy_net, target_net = QNetwork(), QNetwork()
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = torch.optim.Adam(policy_net.parameters(), lr=5e-3)
    memory = deque(maxlen=500)
    pos = (0, 0)
    for step in range(120):
        if random.random() < 0.3:
            action = random.randrange(4)
        else:
            with torch.no_grad():
                action = policy_net(torch.tensor(pos, dtype=torch.float32) / 3).argmax().item()
        nxt, reward, done = env_step(pos, action)
        memory.append((pos, action, reward, nxt, done))
        pos = (0, 0) if done else nxt
        if len(memory) >= 32:
            loss = optimize(policy_net, target_net, optimizer, memory)
            if step % 30 == 29:
                target_net.load_state_dict(policy_net.state_dict())
                print(f"step {step + 1} loss {loss:.4f}")


if __name__ == "__main__":
    main()
