"""Steps that call custom Functions, made once for each engine."""

from functools import cache

from fuzzing.machine import HookFailure, Impossible, Machine, step


@cache
def functions_of(t) -> dict:
    """Return the Functions, written for one engine."""
    function, once = t.autograd.Function, t.autograd.function.once_differentiable

    class Product(function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            needs = ctx.needs_input_grad
            return grad * y if needs[0] else None, grad * x if needs[1] else None

    class Tanh(function):
        @staticmethod
        def forward(ctx, x):
            out = x.tanh()
            ctx.save_for_backward(out)
            return out

        @staticmethod
        @once
        def backward(ctx, grad):
            (out,) = ctx.saved_tensors
            return grad * (1 - out * out)

    class Doubled(function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class Parts(function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            sign = x.sign()
            ctx.mark_non_differentiable(sign)
            return x * factor, sign, x + 1

        @staticmethod
        def backward(ctx, first, _, third):
            return first * ctx.factor + third, None

    class PartsAsTheyCome(function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            Machine.told.append(("came", first is None, second is None))
            if first is None and second is None:
                return None
            return (0 if first is None else first * 2) + (0 if second is None else second * 3)

    class Same(function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    class Viewed(function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 0.5

    class Copied(function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    class WrongCount(Copied):
        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    class WrongShape(Copied):
        @staticmethod
        def backward(ctx, grad):
            return grad.new_ones(7, 7)

    class Failing(Copied):
        @staticmethod
        def backward(ctx, grad):
            raise HookFailure("backward failed")

    class Nested(function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with t.enable_grad():
                inner = x.detach().requires_grad_()
                inner.sin().backward(grad.detach())
            return inner.grad

    class SavesIntermediate(function):
        @staticmethod
        def forward(ctx, x):
            ctx.half = x * 0.5
            ctx.save_for_backward(ctx.half, None)
            return ctx.half * x

        @staticmethod
        def backward(ctx, grad):
            half, _ = ctx.saved_tensors
            return grad * half * 4

    class Apart(function):
        @staticmethod
        def forward(x, scale):
            return x * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.scale = inputs[1]
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.scale, None

    return {
        kind.__name__: kind
        for kind in (
            Product,
            Tanh,
            Doubled,
            Parts,
            PartsAsTheyCome,
            Same,
            Viewed,
            WrongCount,
            WrongShape,
            Failing,
            Nested,
            SavesIntermediate,
            Apart,
        )
    }


@step("Function", 8)
def custom(m, a, b, k):
    if m.t.is_inference_mode_enabled():  # views of inference tensors are no views in PyTorch
        raise Impossible
    Machine.told = m.trace
    found = functions_of(m.t)
    x = m.floating(a)
    name = [
        "Product",
        "Tanh",
        "Doubled",
        "Parts",
        "PartsAsTheyCome",
        "Same",
        "Viewed",
        "Nested",
        "SavesIntermediate",
        "Apart",
        "Same",
        "Viewed",
        "Tanh",
        "Doubled",
    ][k % 14]
    args = (x,)
    if name == "Product":
        args = (x, m.broadcasting(x, b) if k // 14 % 5 == 0 else m.alike(x, b))
    if name == "Doubled":
        if x.is_inference() or (x.is_leaf and x.requires_grad and not x.is_contiguous()):
            raise Impossible  # PyTorch writes before it refuses, and may have saved a copy in another order
        args = (x if k // 14 % 3 else x * 1,)
    if name in ("Parts", "Apart"):
        args = (x, 1.5)
    out = found[name].apply(*args)
    return m.refused_when_written(out if isinstance(out, tuple) else (out,))


@step("bad Function", 1)
def bad(m, a, b, k):
    name = ["WrongCount", "WrongShape", "Failing"][k % 3]
    if k // 3 % 3 == 0:
        return functions_of(m.t)[name].apply(m.floating(a))
    return None
