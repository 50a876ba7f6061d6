"""Memory formats and gradients: `to` and `contiguous` in a graph, and the strides that `.grad` gets."""

import torch

torch.manual_seed(0)
weights = torch.arange(24.0).reshape(1, 2, 3, 4)

x = torch.randn(1, 2, 3, 4, requires_grad=True)
y = x.to(memory_format=torch.channels_last)
print(type(y.grad_fn).__name__, y.stride(), y.is_leaf)
(y * weights).sum().backward()
print(x.grad.stride(), torch.equal(x.grad, weights))

z = torch.randn(1, 2, 3, 4).to(memory_format=torch.channels_last).requires_grad_()
same = z.contiguous(memory_format=torch.channels_last)
print(same is z, z.to(memory_format=torch.channels_last) is z, type(z.contiguous().grad_fn).__name__)
(z.contiguous() * weights).sum().backward()
print("the gradient lies as its leaf does:", z.grad.stride(), torch.equal(z.grad, weights))
before = z.grad
(z * weights).sum().backward()
print("and is added to in place:", z.grad is before, z.grad.stride(), z.grad[0, 1, 2, 3].item())

p = torch.randn(4, 3).t().requires_grad_()
p.matmul(torch.ones(4, 2)).sum().backward()
print(p.stride(), p.grad.stride())
half = torch.randn(6, 4)[::2].requires_grad_()
(half * 2).sum().backward()
print("a leaf with gaps:", half.stride(), half.grad.stride())

copy = z.clone(memory_format=torch.contiguous_format)
print(type(copy.grad_fn).__name__, copy.stride(), z.detach().stride(), z.data.stride())
(g,) = torch.autograd.grad((z.double() ** 2).sum(), z)
print(g.dtype, torch.allclose(g, 2 * z))
image = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last).requires_grad_()
kernel = torch.randn(5, 3, 3, 3, requires_grad=True)
out = torch.nn.functional.conv2d(image, kernel)
print(out.stride(), type(out.grad_fn).__name__)
first = torch.autograd.grad(out.sum(), [image, kernel], create_graph=True)
print([tuple(one.shape) for one in first])
out.square().sum().backward()
print(image.grad.stride(), kernel.grad.stride())
