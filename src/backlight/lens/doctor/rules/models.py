"""BL72x and BL82x: mistakes in a complete model, or slow ones; no engine reports them."""

from backlight.lens.doctor.rule import Rule
from backlight.lens.finding import NOTE, WARNING

RULES = (
    Rule(
        id="BL720",
        slug="loss-of-probabilities",
        title="a loss that takes scores is given probabilities",
        level=WARNING,
        explanation="cross_entropy takes the scores and applies log_softmax itself, binary_cross_entropy_with_logits "
        "a sigmoid. Given what softmax has returned, it applies a second one to numbers between 0 and 1: the loss can "
        "no longer get small, and gradients are weak. Nothing fails, and training is slow and ends early.",
        cause="The model ends in softmax or sigmoid, and the loss has one built in.",
        cure="Give the loss the scores: leave the last softmax or sigmoid out while training.",
        reference="torch.nn.CrossEntropyLoss",
        wrong="""
            model = nn.Linear(4, 3)
            labels = torch.tensor([0, 2])
            F.cross_entropy(torch.softmax(model(torch.randn(2, 4)), dim=1), labels).backward()
        """,
        right="""
            model = nn.Linear(4, 3)
            labels = torch.tensor([0, 2])
            F.cross_entropy(model(torch.randn(2, 4)), labels).backward()
        """,
    ),
    Rule(
        id="BL721",
        slug="layers-in-plain-list",
        title="layers in a plain list or dict are no part of the module",
        level=WARNING,
        explanation="A module finds its layers when they are assigned as attributes. A list, tuple or dict is just an "
        "attribute: the layers in it are not in parameters(), are not saved by state_dict(), not moved by to(), and no "
        "optimiser changes them.",
        cause="Layers were collected in a list, tuple or dict of Python's.",
        cure="Use nn.ModuleList or nn.ModuleDict.",
        reference="torch.nn.ModuleList",
        wrong="""
            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layers = [nn.Linear(8, 8), nn.Linear(8, 8)]
                    self.head = nn.Linear(8, 1)
                def forward(self, x):
                    for layer in self.layers:
                        x = layer(x)
                    return self.head(x)
            model = Model()
            model(torch.randn(2, 8)).sum().backward()
        """,
        right="""
            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
                    self.head = nn.Linear(8, 1)
                def forward(self, x):
                    for layer in self.layers:
                        x = layer(x)
                    return self.head(x)
            model = Model()
            model(torch.randn(2, 8)).sum().backward()
        """,
    ),
    Rule(
        id="BL722",
        slug="train-mode-forgotten",
        title="the model goes on learning in eval mode",
        level=WARNING,
        explanation="eval() makes dropout let everything pass and batch norm use its running statistics, until train() "
        "is called. A loop that evaluates after each epoch has to switch back.",
        cause="model.eval() before the evaluation, and no model.train() after it.",
        cure="Call model.train() at the start of each epoch.",
        reference="torch.nn.Module.eval",
        wrong="""
            model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(3):
                for step in range(2):
                    optimizer.zero_grad()
                    model(torch.ones(2, 3)).sum().backward()
                    optimizer.step()
                model.eval()
                with torch.no_grad():
                    model(torch.ones(2, 3))
        """,
        right="""
            model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(3):
                model.train()
                for step in range(2):
                    optimizer.zero_grad()
                    model(torch.ones(2, 3)).sum().backward()
                    optimizer.step()
                model.eval()
                with torch.no_grad():
                    model(torch.ones(2, 3))
        """,
    ),
    Rule(
        id="BL723",
        slug="dead-relu",
        title="a relu returns nothing but zeros",
        level=WARNING,
        explanation="Where a relu returns 0 its slope is 0 too. If that holds for every unit of a layer and every "
        "example, no gradient passes it, and what is before it never learns again.",
        cause="A learning rate that threw the weights far to the negative side, a bias that starts there, or inputs "
        "that are not normalised.",
        cure="Use a smaller learning rate, look at the initial weights and the inputs, or use leaky_relu or gelu.",
        reference="torch.nn.ReLU",
        wrong="""
            body, head = nn.Linear(3, 8), nn.Linear(8, 1)
            with torch.no_grad():
                body.bias.fill_(-100.0)
            for step in range(25):
                body.zero_grad()
                head.zero_grad()
                head(torch.relu(body(torch.rand(4, 3)))).sum().backward()
        """,
        right="""
            body, head = nn.Linear(3, 8), nn.Linear(8, 1)
            with torch.no_grad():
                body.bias.fill_(0.1)
            for step in range(25):
                body.zero_grad()
                head.zero_grad()
                head(torch.relu(body(torch.rand(4, 3)))).sum().backward()
        """,
    ),
    Rule(
        id="BL724",
        slug="exploding-gradient",
        title="gradients explode",
        level=WARNING,
        explanation="Each step makes the next gradient many times larger: in a few more steps numbers overflow and "
        "all weights are NaN.",
        cause="The learning rate is too high, or a recurrence multiplies by more than 1 many times.",
        cure="Use a smaller learning rate, or nn.utils.clip_grad_norm_(model.parameters(), 1.0) before the step.",
        reference="torch.nn.utils.clip_grad_norm_",
        wrong="""
            w = torch.ones(2, requires_grad=True)
            optimizer = torch.optim.SGD([w], lr=20.0)
            for step in range(8):
                optimizer.zero_grad()
                (w ** 2).sum().backward()
                optimizer.step()
        """,
        right="""
            w = torch.ones(2, requires_grad=True)
            optimizer = torch.optim.SGD([w], lr=0.2)
            for step in range(8):
                optimizer.zero_grad()
                (w ** 2).sum().backward()
                optimizer.step()
        """,
    ),
    Rule(
        id="BL725",
        slug="gradients-all-zero",
        title="every gradient is exactly 0, step after step",
        level=WARNING,
        explanation="round, floor, ceil, trunc and sign are flat everywhere but at their steps. Their derivative "
        "is 0, so that backward() runs, every .grad is exactly 0, and training stands still without a word.",
        cause="An op whose derivative is 0 everywhere lies between the parameters and the loss.",
        cure="Leave it out of the loss, or pass the gradient straight through: x + (x.round() - x).detach().",
        reference="Autograd mechanics, Gradients for non-differentiable functions",
        wrong="""
            model = nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(3):
                optimizer.zero_grad()
                (model(torch.randn(8, 4)).round() - 1.5).square().mean().backward()
                optimizer.step()
        """,
        right="""
            model = nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(3):
                optimizer.zero_grad()
                out = model(torch.randn(8, 4))
                (out + (out.round() - out).detach() - 1.5).square().mean().backward()
                optimizer.step()
        """,
    ),
    Rule(
        id="BL726",
        slug="clip-before-backward",
        title="gradients are clipped before there are any",
        level=WARNING,
        explanation="clip_grad_norm_ and clip_grad_value_ change the .grad that parameters have when they are called. "
        "Between zero_grad() and backward() all of them are None: nothing is clipped, and nothing is said.",
        cause="The clipping stands before backward().",
        cure="Clip between backward() and step().",
        reference="torch.nn.utils.clip_grad_norm_",
        wrong="""
            model = nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(2):
                optimizer.zero_grad()
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                model(torch.randn(8, 4)).square().mean().backward()
                optimizer.step()
        """,
        right="""
            model = nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(2):
                optimizer.zero_grad()
                model(torch.randn(8, 4)).square().mean().backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                optimizer.step()
        """,
    ),
    Rule(
        id="BL727",
        slug="gradients-nobody-uses",
        title="parameters get gradients that no optimiser uses",
        level=NOTE,
        explanation="To train the head of a model only is legal. If the rest is not frozen, backward() computes its "
        "gradients all the same, which costs time and memory, and they add up unused.",
        cause="The optimiser was given a part of the model, and the rest was not frozen.",
        cure="Freeze what is not trained, body.requires_grad_(False), or give the optimiser all parameters.",
        reference="torch.nn.Module.requires_grad_",
        wrong="""
            model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
            optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()
        """,
        right="""
            model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
            model[0].requires_grad_(False)
            optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()
        """,
    ),
)
NUMBERS = (
    Rule(
        id="BL820",
        slug="infinite-loss",
        title="the loss is infinite",
        level=WARNING,
        explanation="Every gradient of an infinite loss is infinite or NaN; after the next step so is every weight.",
        cause="An op left the range of its dtype or the edge of its domain: exp of a large number, log of 0, x / 0.",
        cure="Keep the op's input inside its domain.",
        reference="torch.nn.functional.logsigmoid",
        wrong="""
            scores = torch.tensor([-200.0, 1.0], requires_grad=True)
            loss = -torch.log(torch.sigmoid(scores)).mean()
            loss.backward()
        """,
        right="""
            scores = torch.tensor([-200.0, 1.0], requires_grad=True)
            loss = F.softplus(-scores).mean()
            loss.backward()
        """,
    ),
)
