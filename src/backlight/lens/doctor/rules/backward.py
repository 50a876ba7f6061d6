"""BL2xx: calling backward()."""

from backlight.lens.doctor.rule import Rule
from backlight.lens.finding import NOTE, WARNING

SECOND = "Trying to backward through the graph a second time"
NO_GRAD_FN = "element 0 of tensors does not require grad and does not have a grad_fn"

RULES = (
    Rule(
        id="BL201",
        slug="backward-on-non-scalar",
        title="backward() of a tensor with more than one element",
        cause="The loss was not reduced to one number.",
        cure="Reduce it (.sum() or .mean()), or pass gradient= of its shape.",
        says="grad can be implicitly created only for scalar outputs",
        reference="torch.Tensor.backward",
        explanation="A gradient is the slope of one number. For a tensor of several elements there would be "
        "one slope each (the Jacobian), so backward() wants to know how to weigh them: it assumes"
        " a weight of 1 only where there is a single element. loss.sum().backward() and "
        "loss.backward(torch.ones_like(loss)) are the same.",
        wrong="""
            x = torch.ones(3, requires_grad=True)
            loss = (x * 2) ** 2
            loss.backward()
        """,
        right="""
            x = torch.ones(3, requires_grad=True)
            loss = (x * 2) ** 2
            loss.mean().backward()
        """,
    ),
    Rule(
        id="BL202",
        slug="complex-loss",
        title="backward() of a complex number",
        cause="A loss has to be real: complex numbers have no order, so there is no steepest descent.",
        cure="Take .abs(), .real or the squared magnitude, or pass gradient=.",
        says="grad can be implicitly created only for real scalar outputs",
        reference="PyTorch's documentation, Autograd mechanics, Autograd for Complex Numbers",
        explanation="The loss of a descent must be a real number, since only these can be compared. For "
        "complex parameters PyTorch gives the conjugate Wirtinger derivative of a real loss.",
        wrong="""
            z = torch.ones((), dtype=torch.complex64, requires_grad=True)
            (z * 2).backward()
        """,
        right="""
            z = torch.ones((), dtype=torch.complex64, requires_grad=True)
            (z * 2).abs().backward()
        """,
    ),
    Rule(
        id="BL203",
        slug="backward-twice",
        title="backward() a second time through a graph that the first one freed",
        cause="backward() frees what the graph keeps as it goes. The same graph was walked before.",
        cure="Call backward() once a forward. If it must be twice, pass retain_graph=True to the first.",
        says=SECOND,
        reference="torch.Tensor.backward, retain_graph",
        explanation="Nodes keep the tensors that their derivatives need. backward() drops them as it goes, so"
        " that memory is free when it ends; a second walk over the same nodes finds nothing. "
        "retain_graph=True keeps them, at the price of that memory.",
        wrong="""
            x = torch.ones(3, requires_grad=True)
            loss = (x * x).sum()
            loss.backward()
            loss.backward()
        """,
        right="""
            x = torch.ones(3, requires_grad=True)
            loss = (x * x).sum()
            loss.backward(retain_graph=True)
            loss.backward()  # gradients add up: x.grad is now twice the slope
        """,
    ),
    Rule(
        id="BL204",
        slug="shared-graph-freed",
        title="two losses share a part of the graph, and the first backward() freed it",
        cause="Both losses are computed from the same intermediate result.",
        cure="Add the losses and call backward() once, or pass retain_graph=True to the first.",
        says=SECOND,
        reference="torch.Tensor.backward, retain_graph",
        explanation="Two losses that share a part of the network share its nodes. The first backward() frees "
        "what these keep, and the second finds nothing. Gradients add up, so that one backward() "
        "of the sum gives the same and walks the shared part once.",
        wrong="""
            x = torch.ones(3, requires_grad=True)
            h = torch.exp(x)
            first, second = h.sum(), (h * h).sum()
            first.backward()
            second.backward()
        """,
        right="""
            x = torch.ones(3, requires_grad=True)
            h = torch.exp(x)
            first, second = h.sum(), (h * h).sum()
            (first + second).backward()
        """,
    ),
    Rule(
        id="BL205",
        slug="freed-saved-tensor",
        title="a saved tensor is read after backward() freed it",
        cause="The graph was walked without retain_graph=True.",
        cure="Read it before backward(), or pass retain_graph=True.",
        says=SECOND,
        reference="torch.Tensor.backward, retain_graph",
        explanation="grad_fn shows what a node keeps for backward as _saved_self, _saved_result and so on. "
        "After backward() it is gone.",
        wrong="""
            x = torch.ones(3, requires_grad=True)
            y = torch.exp(x)
            y.sum().backward()
            print(y.grad_fn._saved_result)
        """,
        right="""
            x = torch.ones(3, requires_grad=True)
            y = torch.exp(x)
            print(y.grad_fn._saved_result)
            y.sum().backward()
        """,
    ),
    Rule(
        id="BL206",
        slug="state-carried-over",
        title="a tensor carried over from the last iteration drags its freed graph along",
        cause="A hidden state (or another running value) still hangs on the graph of the iteration before, which its "
        "backward() freed.",
        cure="Detach it at the start of each iteration: h = h.detach().",
        says=SECOND,
        reference="torch.Tensor.detach",
        explanation="The state of a recurrent network, a running average of activations or a cached embedding"
        " is the result of ops of the last iteration. Used in the next one, it ties both graphs "
        "together, and backward() walks back into the part that is freed already. With "
        "retain_graph=True it would run, ever further back and ever slower. Cutting the state off"
        " between iterations is truncated backpropagation through time.",
        wrong="""
            cell = nn.RNNCell(2, 2)
            h = torch.zeros(1, 2)
            for step in range(2):
                h = cell(torch.randn(1, 2), h)
                h.sum().backward()
        """,
        right="""
            cell = nn.RNNCell(2, 2)
            h = torch.zeros(1, 2)
            for step in range(2):
                cell.zero_grad()
                h = cell(torch.randn(1, 2), h.detach())
                h.sum().backward()
        """,
    ),
    Rule(
        id="BL207",
        slug="backward-twice-accumulates",
        title="backward() twice through the same graph adds every gradient twice",
        level=WARNING,
        cause="No node of this graph keeps tensors, so nothing stops the second walk.",
        cure="Call backward() once a forward.",
        reference="torch.Tensor.backward",
        explanation="Only nodes that keep tensors notice that they were freed. A graph of additions, reshapes"
        " and sums keeps none, so that a second backward() runs and adds every gradient again.",
        wrong="""
            a = torch.tensor(2.0, requires_grad=True)
            b = a + 1
            b.backward()
            b.backward()
            print(a.grad)  # 2, the slope is 1
        """,
        right="""
            a = torch.tensor(2.0, requires_grad=True)
            b = a + 1
            b.backward()
            print(a.grad)
        """,
    ),
    Rule(
        id="BL208",
        slug="nothing-requires-grad",
        title="backward() of a tensor that has no graph: nothing it was computed from requires grad",
        cause="No input and no parameter has requires_grad=True.",
        cure="Make what is to be learned with requires_grad=True before the forward.",
        says=NO_GRAD_FN,
        reference="PyTorch's documentation, Autograd mechanics, Setting requires_grad",
        explanation="An op is recorded only if one of its inputs requires grad. If none does, the result has "
        "no grad_fn, and there is nothing to walk back through.",
        wrong="""
            w = torch.ones(3)
            loss = (w * 2).sum()
            loss.backward()
        """,
        right="""
            w = torch.ones(3, requires_grad=True)
            loss = (w * 2).sum()
            loss.backward()
        """,
    ),
    Rule(
        id="BL209",
        slug="cut-by-non-differentiable",
        title="backward() of a tensor whose graph was cut by an op that has no derivative",
        cause="An op such as argmax, a comparison or .item() lies between the loss and what requires grad.",
        cure="Use a differentiable stand-in: softmax for argmax, the score itself for the comparison.",
        says=NO_GRAD_FN,
        explanation="argmax, comparisons, rounding to integers, sorting order and .item() have no derivative,"
        " or one that is zero everywhere: their results do not require grad, and what is computed"
        " from them has no way back to the parameters.",
        wrong="""
            scores = torch.randn(4, requires_grad=True)
            loss = (scores.argmax().float() - 1) ** 2
            loss.backward()
        """,
        right="""
            scores = torch.randn(4, requires_grad=True)
            places = torch.arange(4.0)
            loss = ((scores.softmax(0) * places).sum() - 1) ** 2
            loss.backward()
        """,
    ),
    Rule(
        id="BL210",
        slug="loss-rebuilt",
        title="the loss was built anew from numbers: its graph is gone",
        cause="torch.tensor(...) copies values and takes no part in the graph.",
        cure="Use the computed tensor itself: torch.stack for a list, .to() or .reshape() to convert.",
        says=NO_GRAD_FN,
        reference="torch.tensor",
        explanation="torch.tensor(x) reads the values of x and makes a new leaf. The history of x stays with "
        "x. torch.stack and torch.cat join tensors and keep their history.",
        wrong="""
            x = torch.randn(4, requires_grad=True)
            loss = torch.as_tensor([x.sum()])
            loss.backward()
        """,
        right="""
            x = torch.randn(4, requires_grad=True)
            loss = torch.stack([x.sum()])
            loss.backward()
        """,
    ),
    Rule(
        id="BL211",
        slug="computed-without-recording",
        title="backward() of something that was computed under no_grad()",
        cause="Nothing was recorded inside the block.",
        cure="Compute the loss outside of no_grad().",
        says=NO_GRAD_FN,
        reference="torch.no_grad",
        explanation="Inside no_grad() ops compute values and record nothing. A tensor that was computed there"
        " has no graph, also after the block has ended.",
        wrong="""
            x = torch.randn(4, requires_grad=True)
            with torch.no_grad():
                loss = (x * 2).sum()
            loss.backward()
        """,
        right="""
            x = torch.randn(4, requires_grad=True)
            loss = (x * 2).sum()
            loss.backward()
        """,
    ),
    Rule(
        id="BL212",
        slug="loss-rebuilt-as-leaf",
        title="the loss was built anew with requires_grad=True: backward() runs, and reaches no parameter",
        cause="torch.tensor(value, requires_grad=True) makes a new leaf, from which no way leads back.",
        cure="Call backward() on the computed loss itself.",
        reference="torch.tensor",
        explanation="torch.tensor(value, requires_grad=True) is a new leaf: it requires grad, so that "
        "backward() does not complain, and its own .grad becomes 1. Nothing else gets a gradient."
        " It is often written to silence the message of BL208.",
        wrong="""
            x = torch.randn(4, requires_grad=True)
            loss = torch.tensor(x.sum().item(), requires_grad=True)
            loss.backward()
            print(x.grad)  # None
        """,
        right="""
            x = torch.randn(4, requires_grad=True)
            loss = x.sum()
            loss.backward()
            print(x.grad)
        """,
    ),
    Rule(
        id="BL213",
        slug="gradient-shape",
        title="the gradient given to backward() has another shape than the tensor",
        cause="gradient= has to have the shape of what backward() is called on.",
        cure="Pass a gradient of that shape: torch.ones_like(y) for the plain sum.",
        says="Mismatch in shape: grad_output[0] has a shape of",
        reference="torch.autograd.backward",
        explanation="What is given to y.backward() is the slope of some later loss by y, so it has y's shape.",
        wrong="""
            a = torch.ones(3, requires_grad=True)
            (a * 2).backward(torch.ones(2))
        """,
        right="""
            a = torch.ones(3, requires_grad=True)
            (a * 2).backward(torch.ones(3))
        """,
    ),
    Rule(
        id="BL214",
        slug="gradient-count",
        title="not as many gradients as tensors are given to backward()",
        cause="autograd.backward wants one gradient (or None) for each tensor.",
        cure="Give one for each, None for scalars.",
        says="got 2 tensors and 1 gradients",
        reference="torch.autograd.backward",
        explanation="autograd.backward([y1, y2], [g1, g2]) starts from several tensors at once, each with its"
        " own gradient.",
        wrong="""
            a = torch.ones(3, requires_grad=True)
            torch.autograd.backward([a * 2, a * 3], [torch.ones(3)])
        """,
        right="""
            a = torch.ones(3, requires_grad=True)
            torch.autograd.backward([a * 2, a * 3], [torch.ones(3), torch.ones(3)])
        """,
    ),
    Rule(
        id="BL215",
        slug="backward-inputs",
        title="backward(inputs=...) gives a .grad only to the tensors named, leaves or not",
        level=NOTE,
        cause="inputs= was given.",
        cure="Nothing needs to change; leave inputs= out to reach all leaves.",
        reference="torch.Tensor.backward, inputs",
        explanation="With inputs= backward() writes only to the .grad of the tensors named, and walks only "
        "the way to them. A tensor that is no leaf gets a .grad then, without retain_grad().",
        wrong="""
            a = torch.tensor(2.0, requires_grad=True)
            b = a * 2
            (b * b).backward(inputs=[b])
            print(b.grad, a.grad)  # 8, None
        """,
        right="""
            a = torch.tensor(2.0, requires_grad=True)
            b = a * 2
            (b * b).backward()
            print(a.grad)
        """,
    ),
    Rule(
        id="BL216",
        slug="create-graph-cycle",
        title="backward(create_graph=True) ties parameters and their gradients into a cycle",
        level=WARNING,
        cause="A .grad that has a graph keeps the parameter, and the parameter keeps its .grad.",
        cure="Use autograd.grad(loss, parameters, create_graph=True), or set .grad to None when it has been used.",
        says="Using backward() with create_graph=True will create a reference cycle",
        reference="torch.autograd.grad",
        explanation="With create_graph=True the gradient is itself recorded, so that it can be "
        "differentiated. Kept in .grad, it refers to the graph, the graph to the parameter, and "
        "the parameter to its .grad: memory that only the garbage collector frees.",
        wrong="""
            a = torch.tensor(2.0, requires_grad=True)
            (a ** 3).backward(create_graph=True)
        """,
        right="""
            a = torch.tensor(2.0, requires_grad=True)
            (slope,) = torch.autograd.grad(a ** 3, a, create_graph=True)
            slope.backward()
        """,
    ),
)
