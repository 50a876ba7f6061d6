"""Programs that use transforms, forward mode, checkpoints and hooks, for the lens's tests on both engines.

Each is source that puts what it computed into `result`; `x` is a tensor of three numbers.
"""

HEADS = {
    "backlight": "import backlight as torch\nfrom backlight.autograd import forward_ad as fwAD\n"
    "from backlight.utils.checkpoint import checkpoint\n",
    "torch": "import torch\nimport torch.autograd.forward_ad as fwAD\nfrom torch.utils.checkpoint import checkpoint\n",
}
START = "torch.manual_seed(0)\nx = torch.tensor([0.5, 1.0, 2.0])\n"
MODEL = """
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
def call(parameters, a):
    return torch.func.functional_call(model, parameters, (a,)).pow(2).sum()
"""
NAMES = "parameters = dict(model.named_parameters())\n"
OWN = """
class Exp(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(a):
        return a.exp()
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]
"""

TRANSFORMS = {
    "grad": "result = torch.func.grad(lambda a: a.sin().sum())(x)",
    "vjp": "result = torch.func.vjp(lambda a: (a.sin(), a.exp()), x)[1]((x, x))[0]",
    "jvp": "result = torch.func.jvp(torch.sin, (x,), (torch.ones(3),))[1]",
    "linearize": "result = torch.func.linearize(torch.sin, x)[1](torch.ones(3))",
    "jacrev": "result = torch.func.jacrev(lambda a: a.sin())(x)",
    "jacfwd": "result = torch.func.jacfwd(lambda a: a.sin())(x)",
    "hessian": "result = torch.func.hessian(lambda a: a.sin().sum())(x)",
    "vmap": "w = torch.ones(3, requires_grad=True)\n"
    "torch.vmap(lambda a: (a * w).exp().sum())(torch.ones(2, 3)).sum().backward()\nresult = w.grad",
    "vmap in vmap": "w = torch.ones(3, requires_grad=True)\n"
    "torch.vmap(torch.vmap(lambda a: (a * w).exp().sum()))(torch.ones(2, 2, 3)).sum().backward()\nresult = w.grad",
    "vmap of grad": "result = torch.vmap(torch.func.grad(lambda a: (a**2).sum()))(torch.ones(2, 3))",
    "grad of vmap": "result = torch.func.grad(lambda a: torch.vmap(torch.sin)(a).sum())(x)",
    "grad of grad": "result = torch.func.grad(lambda b: torch.func.grad(lambda a: (a**3).sum())(b).sum())(x)",
    "random in vmap": "result = torch.vmap(lambda a: a + torch.randn(3), randomness='different')(torch.ones(2, 3))",
    "writes in vmap": "def f(a):\n    b = a * 1\n    b.mul_(2)\n    b[0] = 1.0\n    return b.sum()\n"
    "result = torch.vmap(torch.func.grad(f))(torch.ones(2, 3))",
    "hook in grad": "def f(a):\n    b = a * 2\n    b.register_hook(lambda g: g * 3)\n    return b.sum()\n"
    "result = torch.func.grad(f)(x)",
    "kept from grad": "kept = []\ndef f(a):\n    kept.append(a.sin())\n    return kept[0].sum()\n"
    "result = torch.func.grad(f)(x)",
    "Function in vmap of grad": OWN
    + "result = torch.vmap(torch.func.grad(lambda a: Exp.apply(a).sum()))(torch.ones(2, 3))",
    "model in vmap": MODEL + NAMES + "torch.vmap(lambda a: call(parameters, a))(torch.ones(2, 3)).sum().backward()\n"
    "result = model[0].weight.grad",
    "model's gradients": MODEL + "parameters = {name: one.detach() for name, one in model.named_parameters()}\n"
    "result = torch.vmap(torch.func.grad(call), (None, 0))(parameters, torch.ones(2, 3))['0.weight']",
    "model's hessians": MODEL
    + NAMES
    + "result = torch.vmap(torch.func.hessian(lambda a: call(parameters, a)))(torch.ones(2, 3))",
    "is_grads_batched": "y = (x.requires_grad_() * 2).exp()\n"
    "result = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)[0]",
    "is_grads_batched, recorded": "y = (x.requires_grad_() * 2).exp()\n"
    "first = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True, create_graph=True)[0]\n"
    "first.pow(2).sum().backward()\nresult = x.grad",
    "grad in vmap": "y = x.requires_grad_().exp()\n"
    "result = torch.vmap(lambda v: torch.autograd.grad(y, x, v, retain_graph=True)[0])(torch.eye(3))",
    "hook on batched gradients": "y = x.requires_grad_() * 2\ny.register_hook(lambda g: g * 3)\n"
    "result = torch.autograd.grad(y.exp(), x, torch.eye(3), is_grads_batched=True)[0]",
    "jacobian": "result = torch.autograd.functional.jacobian(lambda a: a.exp(), x, vectorize=True)",
    "jacobian, forward": "result = torch.autograd.functional.jacobian(lambda a: a.exp(), x, vectorize=True, "
    "strategy='forward-mode')",
    "functional.hessian": "result = torch.autograd.functional.hessian(lambda a: a.exp().sum(), x, vectorize=True)",
    "functional.hvp": "result = torch.autograd.functional.hvp(lambda a: a.exp().sum(), x, torch.ones(3))[1]",
    "duals": "with fwAD.dual_level():\n    dual = fwAD.make_dual(x, torch.ones(3))\n"
    "    result = fwAD.unpack_dual(dual.sin() * dual).tangent",
    "duals of gradients": "x.requires_grad_()\nwith fwAD.dual_level():\n    dual = fwAD.make_dual(x, torch.ones(3))\n"
    "    (slope,) = torch.autograd.grad(dual.sin().sum(), dual, create_graph=True)\n"
    "    result = fwAD.unpack_dual(slope).tangent",
    "checkpoint": "checkpoint(lambda a: a.sin().exp(), x.requires_grad_(), use_reentrant=False).sum().backward()\n"
    "result = x.grad",
    "checkpoint, reentrant": "checkpoint(lambda a: a.sin().exp(), x.requires_grad_(), use_reentrant=True).sum()"
    ".backward()\nresult = x.grad",
    "checkpoint in checkpoint": "inner = lambda a: checkpoint(torch.exp, a.sin(), use_reentrant=False)\n"
    "checkpoint(inner, x.requires_grad_(), use_reentrant=False).sum().backward()\nresult = x.grad",
    "saved_tensors_hooks": "with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), "
    "torch.from_numpy):\n    y = x.requires_grad_().exp().sin().sum()\ny.backward()\nresult = x.grad",
    "save_on_cpu": "with torch.autograd.graph.save_on_cpu():\n    y = x.requires_grad_().exp().sin().sum()\n"
    "y.backward()\nresult = x.grad",
    "allow_mutation_on_saved_tensors": "with torch.autograd.graph.allow_mutation_on_saved_tensors():\n"
    "    y = x.requires_grad_().exp()\n    z = y.sin()\n    y.mul_(2)\n    z.sum().backward()\nresult = x.grad",
}


def result_of(engine: str, source: str) -> list:
    """Run a program, and return what it computed."""
    names = {}
    exec(compile(HEADS[engine] + START + source, "<transform>", "exec"), names)
    return names["result"].detach().tolist()
