import torch
import torch.nn as nn


class Monitor:
    """Collects activations and gradient norms with hooks, and scales one layer's gradient."""

    def __init__(self, model):
        self.activations, self.norms = {}, {}
        self.handles = []
        for name, module in model.named_modules():
            if isinstance(module, nn.ReLU):
                self.handles.append(module.register_forward_hook(self.keep(name)))
        for name, p in model.named_parameters():
            self.handles.append(p.register_hook(self.measure(name)))
        self.handles.append(model[0].weight.register_hook(lambda grad: grad * 0.5))

    def keep(self, name):
        def hook(module, inputs, output):
            self.activations[name] = (output.detach() == 0).float().mean().item()

        return hook

    def measure(self, name):
        def hook(grad):
            self.norms[name] = grad.norm().item()

        return hook

    def close(self):
        for handle in self.handles:
            handle.remove()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    nn.init.constant_(model[0].bias, -1.0)  # few active units per sample
    monitor = Monitor(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    x = torch.randn(128, 6)
    y = x.abs().sum(1, keepdim=True)
    l1 = 1e-4
    for epoch in range(30):
        hidden = model[:2](x)
        hidden.retain_grad()
        loss = nn.functional.huber_loss(model[2:](hidden), y) + l1 * hidden.abs().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item(), "hidden grad", hidden.grad.norm().item())
    print({k: round(v, 2) for k, v in monitor.activations.items()}, len(monitor.norms))
    monitor.close()


if __name__ == "__main__":
    main()
