"""BL7xx: training loops and optimisers."""

from backlight.lens.doctor.rule import Rule
from backlight.lens.finding import NOTE, WARNING

RULES = (
    Rule(
        id="BL701",
        slug="optimizer-over-non-leaf",
        title="an optimiser is given a tensor that an op computed",
        cause="An op was applied to the parameter after requires_grad=True, so that the name holds its result.",
        cure="Compute the values first and set requires_grad last; give the optimiser the leaf.",
        says="can't optimize a non-leaf Tensor",
        reference="torch.optim",
        explanation="An optimiser writes new values into what it is given. A tensor that an op computed would"
        " be computed anew by the next forward, and has no .grad; only leaves can be optimised.",
        wrong="""
            w = torch.randn(3, requires_grad=True) * 0.1
            torch.optim.SGD([w], lr=0.1)
        """,
        right="""
            w = (torch.randn(3) * 0.1).requires_grad_()
            torch.optim.SGD([w], lr=0.1)
        """,
    ),
    Rule(
        id="BL702",
        slug="no-parameters",
        title="an optimiser is given no parameters",
        cause="Layers in a plain list, tuple or dict are not found by parameters(); neither are tensors that are no "
        "nn.Parameter. Or a generator was used up before.",
        cure="Keep layers in nn.ModuleList or nn.ModuleDict, tensors in nn.Parameter.",
        says="optimizer got an empty parameter list",
        reference="torch.nn.ModuleList",
        explanation="parameters() finds nn.Parameter and modules that are attributes of the module. A list, "
        "tuple or dict hides what is in it; nn.ModuleList, nn.ModuleDict and nn.ParameterList do "
        "not. A generator such as model.parameters() can be used once.",
        wrong="""
            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layers = [nn.Linear(2, 2)]
            torch.optim.SGD(Model().parameters(), lr=0.1)
        """,
        right="""
            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layers = nn.ModuleList([nn.Linear(2, 2)])
            torch.optim.SGD(Model().parameters(), lr=0.1)
        """,
    ),
    Rule(
        id="BL703",
        slug="forgotten-zero-grad",
        title="gradients of several iterations add up: zero_grad() is missing",
        level=WARNING,
        cause="backward() adds to .grad, and nothing has reset it since the last step.",
        cure="Call optimizer.zero_grad() before each backward(), or set .grad to None.",
        reference="torch.optim.Optimizer.zero_grad",
        explanation="backward() adds to .grad, so that several losses or several small batches can share one "
        "step. Without zero_grad() the gradients of all iterations before go into every step: its"
        " direction is an old average and its length grows.",
        wrong="""
            w = torch.ones(1, requires_grad=True)
            optimizer = torch.optim.SGD([w], lr=0.1)
            for step in range(3):
                (w * 2).sum().backward()
                optimizer.step()
        """,
        right="""
            w = torch.ones(1, requires_grad=True)
            optimizer = torch.optim.SGD([w], lr=0.1)
            for step in range(3):
                optimizer.zero_grad()
                (w * 2).sum().backward()
                optimizer.step()
        """,
    ),
    Rule(
        id="BL704",
        slug="zero-grad-sets-none",
        title="zero_grad() sets .grad to None, not to zeros",
        level=NOTE,
        cause="set_to_none=True is the default since PyTorch 2.0.",
        cure="Nothing needs to change; pass set_to_none=False for zeros.",
        reference="torch.optim.Optimizer.zero_grad",
        explanation="None costs no memory and lets optimisers leave out parameters that got no gradient, "
        "which a zero would not: with momentum or weight decay a zero gradient still moves a "
        "parameter.",
        wrong="""
            layer = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            layer(torch.ones(1, 1)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            print(layer.weight.grad)
        """,
        right="""
            layer = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            layer(torch.ones(1, 1)).sum().backward()
            optimizer.step()
        """,
    ),
    Rule(
        id="BL705",
        slug="step-without-gradients",
        title="optimizer.step() changes nothing: no parameter has a gradient",
        level=WARNING,
        cause="backward() was not called since the last zero_grad(), or did not reach these parameters.",
        cure="Call backward() between zero_grad() and step().",
        reference="torch.optim.Optimizer.step",
        explanation="step() leaves parameters alone whose .grad is None. If all are, it does nothing, and "
        "training stands still without a word.",
        wrong="""
            layer = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            optimizer.step()
        """,
        right="""
            layer = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            layer(torch.ones(1, 1)).sum().backward()
            optimizer.step()
        """,
    ),
    Rule(
        id="BL706",
        slug="scheduler-before-optimizer",
        title="lr_scheduler.step() comes before optimizer.step()",
        level=WARNING,
        cause="The order is the wrong way round, or optimizer.step() is never called.",
        cure="Call optimizer.step() first, then scheduler.step().",
        says="Detected call of `lr_scheduler.step()` before `optimizer.step()`.",
        reference="torch.optim, How to adjust learning rate",
        explanation="A schedule sets the learning rate for the next step. Stepped first, it replaces the "
        "first learning rate before it was used once.",
        wrong="""
            layer = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
            schedule.step()
        """,
        right="""
            layer = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
            layer(torch.ones(1, 1)).sum().backward()
            optimizer.step()
            schedule.step()
        """,
    ),
    Rule(
        id="BL707",
        slug="parameters-cut-off",
        title="parameters of a module never get a gradient: the loss does not depend on them",
        level=WARNING,
        cause="The forward does not use them, or detach(), .data, .item() or NumPy lies between them and the loss.",
        cure="Use them in the forward, remove what cuts, or freeze them with requires_grad_(False).",
        explanation="A parameter that the loss does not depend on has .grad None for ever and is never "
        "changed, without a word. Either the forward forgot a layer, or something on the way "
        "cuts: detach(), .data, .item(), NumPy, no_grad(), argmax.",
        wrong="""
            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)
                def forward(self, x):
                    return self.first(x)
            model = Model()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(3):
                optimizer.zero_grad()
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        """,
        right="""
            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)
                def forward(self, x):
                    return self.second(self.first(x))
            model = Model()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(3):
                optimizer.zero_grad()
                model(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        """,
    ),
    Rule(
        id="BL708",
        slug="optimizer-holds-replaced",
        title="the optimiser holds parameters that the model no longer has",
        level=WARNING,
        cause="A parameter or layer was replaced after the optimiser was made.",
        cure="Make the optimiser after the last change of the model, or write into it with .copy_() under no_grad().",
        reference="torch.optim, Constructing it",
        explanation="An optimiser holds the parameters that it was given. If the model gets new ones later (a"
        " new head, .to() on old versions, a loaded layer), the optimiser goes on changing the "
        "old ones, which nothing uses.",
        wrong="""
            layer = nn.Linear(1, 1)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            layer.weight = nn.Parameter(torch.ones(1, 1))
            layer(torch.ones(1, 1)).sum().backward()
            optimizer.step()
        """,
        right="""
            layer = nn.Linear(1, 1)
            layer.weight = nn.Parameter(torch.ones(1, 1))
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
            layer(torch.ones(1, 1)).sum().backward()
            optimizer.step()
        """,
    ),
    Rule(
        id="BL709",
        slug="total-loss-keeps-graphs",
        title="total += loss keeps the graph of every iteration alive",
        level=WARNING,
        cause="The sum is itself recorded, and its graph reaches all losses.",
        cure="Add numbers: total += loss.item(), or loss.detach().",
        reference="PyTorch's documentation, Frequently Asked Questions, My model reports out of memory",
        explanation="loss is a tensor with a graph, and total += loss records an addition: the total refers "
        "to the graph of every iteration, so that memory grows with each. A number has no graph.",
        wrong="""
            layer = nn.Linear(1, 1)
            total = 0
            for step in range(5):
                loss = layer(torch.ones(1, 1)).sum()
                total += loss
        """,
        right="""
            layer = nn.Linear(1, 1)
            total = 0
            for step in range(5):
                loss = layer(torch.ones(1, 1)).sum()
                total += loss.item()
        """,
    ),
    Rule(
        id="BL710",
        slug="tied-through-data",
        title="two parameters share memory through .data: values are tied, gradients are not",
        level=WARNING,
        cause="Assigning .data shares the storage; each parameter still has its own .grad.",
        cure="Tie the parameter itself: b.weight = a.weight.",
        reference="torch.nn.Parameter",
        explanation="b.weight.data = a.weight.data lets two parameters share their memory. Each still gets "
        "its own gradient, of its own uses, and an optimiser steps both: the shared weights move "
        "twice, each time by a part of the gradient. Tied weights are one parameter that two "
        "modules hold.",
        wrong="""
            a, b = nn.Linear(2, 2), nn.Linear(2, 2)
            b.weight.data = a.weight.data
            (a(torch.ones(1, 2)) + b(torch.ones(1, 2))).sum().backward()
        """,
        right="""
            a, b = nn.Linear(2, 2), nn.Linear(2, 2)
            b.weight = a.weight
            (a(torch.ones(1, 2)) + b(torch.ones(1, 2))).sum().backward()
        """,
    ),
    Rule(
        id="BL711",
        slug="loss-broadcasts",
        title="input and target of a loss have different shapes and are broadcast against each other",
        level=WARNING,
        cause="One of them has a dim of size 1 that the other lacks: (n, 1) against (n) makes an n × n table.",
        cure="Give both the same shape: .squeeze(1) on the one or .unsqueeze(1) on the other.",
        says="Using a target size (torch.Size([4])) that is different to the input size (torch.Size([4, 1])).",
        reference="torch.nn.functional.mse_loss",
        explanation="(n, 1) against (n) broadcasts to a table of n × n: every prediction is compared with "
        "every target, and the model learns to predict their mean. It is the output of "
        "nn.Linear(…, 1) and a plain vector of targets that meet like this.",
        wrong="""
            F.mse_loss(torch.ones(4, 1, requires_grad=True), torch.zeros(4))
        """,
        right="""
            F.mse_loss(torch.ones(4, 1, requires_grad=True).squeeze(1), torch.zeros(4))
        """,
    ),
    Rule(
        id="BL712",
        slug="softmax-without-dim",
        title="softmax without dim: which one is meant is guessed from the number of dims",
        level=WARNING,
        cause="dim was left out.",
        cure="Pass it: dim=-1 for the last.",
        says="Implicit dimension choice for softmax has been deprecated.",
        reference="torch.nn.functional.softmax",
        explanation="Without dim an old rule guesses: 0 for tensors of 0, 1 or 3 dims, else 1. For a batch of"
        " sequences that is the wrong one.",
        wrong="""
            F.softmax(torch.ones(2, 2))
        """,
        right="""
            F.softmax(torch.ones(2, 2), dim=-1)
        """,
    ),
    Rule(
        id="BL713",
        slug="target-dtype",
        title="targets of a classification loss are not integers",
        cause="Class numbers were made as floats.",
        cure="Convert them: target.long(); or give class probabilities of the input's shape.",
        says="expected target dtype to be Long or Byte, but got Float",
        reference="torch.nn.functional.cross_entropy",
        explanation="Targets are class numbers, of integer type, one for each row of scores; or probabilities"
        " of the scores' own shape.",
        wrong="""
            scores = torch.randn(2, 3, requires_grad=True)
            F.cross_entropy(scores, torch.tensor([0.0, 1.0]))
        """,
        right="""
            scores = torch.randn(2, 3, requires_grad=True)
            F.cross_entropy(scores, torch.tensor([0, 1]))
        """,
    ),
    Rule(
        id="BL714",
        slug="distributed-unused-parameters",
        title="DistributedDataParallel waits for gradients of parameters that the loss does not depend on",
        cause="The forward does not use all parameters.",
        cure="Use them, freeze them before wrapping, or pass find_unused_parameters=True.",
        says="Expected to have finished reduction in the prior iteration before starting a new one.",
        reference="torch.nn.parallel.DistributedDataParallel",
        explanation="Each process waits until all gradients have arrived before it exchanges them. A "
        "parameter that the loss does not depend on never arrives. In a single process the same "
        "mistake is silent: BL707.",
        wrong="""
            model = nn.parallel.DistributedDataParallel(model)  # of which one layer is not used
            for batch in batches:
                model(batch).sum().backward()
        """,
        right="""
            model = nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
            for batch in batches:
                model(batch).sum().backward()
        """,
    ),
)
