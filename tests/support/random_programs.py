"""The ops and names that random programs are made of."""


def unary(name):
    return lambda t, x, y, k: getattr(x, name)()


def in_place(name, *values):
    def write(t, x, y, k):
        getattr(x, name)(*values)
        return x

    return write


def write_other(name):
    def write(t, x, y, k):
        getattr(x, name)(y)
        return x

    return write


def assign(t, x, y, k):
    x[k % x.shape[0]] = y.reshape(-1)[0]
    return x


def under_no_grad(t, x, y, k):
    with t.no_grad():
        return x * 0.5 + y


def write_under_no_grad(t, x, y, k):
    with t.no_grad():
        x.mul_(0.75)
    return x


def hook(t, x, y, k):
    x.register_hook(lambda grad: grad * 0.5)
    return x


def retained(t, x, y, k):
    x.retain_grad()
    return x


OPS = {
    "add": lambda t, x, y, k: x + y,
    "sub": lambda t, x, y, k: y - x,
    "mul": lambda t, x, y, k: x * y,
    "div": lambda t, x, y, k: x / (y * y + 1),
    "scale": lambda t, x, y, k: x * 0.5,
    "tanh": unary("tanh"),
    "sigmoid": unary("sigmoid"),
    "sin": unary("sin"),
    "relu": unary("relu"),
    "abs": unary("abs"),
    "softmax": lambda t, x, y, k: x.softmax(-1),
    "matmul": lambda t, x, y, k: x @ y.t() @ x * 0.1,
    "mean": lambda t, x, y, k: x.mean(0, keepdim=True).expand(3, 4).clone(),
    "sum": lambda t, x, y, k: x.sum(1, keepdim=True) * 0.25 + x,
    "where": lambda t, x, y, k: t.where(x > y, x, y * 2),
    "cat": lambda t, x, y, k: t.cat([x, y], 0)[1:4],
    "stack": lambda t, x, y, k: t.stack([x, y], 1).sum(1),
    "index": lambda t, x, y, k: x[[0, 2, 0]],
    "clone": unary("clone"),
    "detach": lambda t, x, y, k: x.detach() + y,
    "row view": lambda t, x, y, k: x[k % 3].expand(3, 4).clone(),
    "flat view": lambda t, x, y, k: x.reshape(12)[:].view(3, 4),
    "flip view": lambda t, x, y, k: x.t().t(),
    "narrow view": lambda t, x, y, k: t.cat([x.narrow(1, k % 2, 3), x[:, 3:]], 1),
    "unbind": lambda t, x, y, k: t.stack(x.unbind(0)[::-1]),
    "no_grad": under_no_grad,
    "tanh_": in_place("tanh_"),
    "mul_": in_place("mul_", 0.5),
    "zero_": in_place("zero_"),
    "add_": write_other("add_"),
    "copy_": write_other("copy_"),
    "write a row": lambda t, x, y, k: (x[k % 3].mul_(0.5), x)[1],
    "write a column": lambda t, x, y, k: (x[:, k % 4].add_(y[:, 0]), x)[1],
    "write through a view": lambda t, x, y, k: (x.view(12)[2:7].sigmoid_(), x)[1],
    "assign": assign,
    "write under no_grad": write_under_no_grad,
    "hook": hook,
    "retain": retained,
}


NAMES = list(OPS)
