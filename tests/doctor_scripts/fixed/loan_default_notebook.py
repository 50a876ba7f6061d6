# exported from notebook: loan default, nn baseline
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader


class CFG:
    seed = 42
    n_rows = 801
    valid_rows = 160
    bs = 32
    epochs = 8
    lr = 2e-3
    features = ["income", "age", "debt", "late_payments", "loan", "years"]


def seed_everything(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_table():
    x = np.random.randn(CFG.n_rows, len(CFG.features)).astype(np.float32)
    logit = -1.2 * x[:, 0] + 1.0 * x[:, 2] + 1.5 * (x[:, 3] > 0.5) - 0.5
    y = (np.random.rand(CFG.n_rows) < 1 / (1 + np.exp(-2 * logit))).astype(np.float32)
    return x, y


class LoanDataset(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), torch.tensor(self.y[i])


class LoanNet(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.bn0 = nn.BatchNorm1d(n_in)
        self.fc1 = nn.Linear(n_in, 64, bias=False)
        self.bn1 = nn.BatchNorm1d(64)
        self.drop = nn.Dropout(0.2)
        self.fc2 = nn.Linear(64, 1)

    def forward(self, x):
        x = self.bn0(x)
        x = torch.relu(self.bn1(self.fc1(x)))
        return self.fc2(self.drop(x)).squeeze(1)


def get_loaders(x, y):
    tr = LoanDataset(x[CFG.valid_rows :], y[CFG.valid_rows :])
    va = LoanDataset(x[: CFG.valid_rows], y[: CFG.valid_rows])
    train_loader = DataLoader(tr, batch_size=CFG.bs, shuffle=True, drop_last=True)
    return train_loader, DataLoader(va, batch_size=CFG.bs)


def train_fn(model, loader, loss_fn, optimizer):
    model.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.mean(losses)


def valid_fn(model, loader):
    model.eval()
    preds, ys = [], []
    with torch.no_grad():
        for xb, yb in loader:
            preds.append(torch.sigmoid(model(xb)).numpy())
            ys.append(yb.numpy())
    preds, ys = np.concatenate(preds), np.concatenate(ys)
    return ((preds > 0.5) == ys).mean()


def main():
    seed_everything(CFG.seed)
    train_loader, valid_loader = get_loaders(*make_table())
    model = LoanNet(len(CFG.features))
    optimizer = torch.optim.Adam(model.parameters(), lr=CFG.lr)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(CFG.epochs):
        loss = train_fn(model, train_loader, loss_fn, optimizer)
        print(f"epoch {epoch} | loss {loss:.4f} | acc {valid_fn(model, valid_loader):.4f}")


if __name__ == "__main__":
    main()
