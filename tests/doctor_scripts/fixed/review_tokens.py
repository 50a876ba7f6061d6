import torch
import torch.nn as nn

reviews = ["good movie", "bad movie", "good plot good cast", "bad plot bad cast", "good fun", "bad fun"]
labels = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
vocab = {}
for review in reviews:
    for word in review.split():
        vocab.setdefault(word, len(vocab))

torch.manual_seed(0)
embed = nn.Embedding(len(vocab), 4)
head = nn.Linear(4, 1)
optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()], lr=0.05)
for epoch in range(15):
    for review, label in zip(reviews, labels):
        ids = torch.tensor([vocab[word] for word in review.split()])
        logit = head(embed(ids).mean(dim=0)).squeeze()
        loss = nn.functional.binary_cross_entropy_with_logits(logit, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print({word: embed.weight[i].norm().item() for word, i in vocab.items()})
