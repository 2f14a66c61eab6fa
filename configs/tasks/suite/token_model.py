"""Tokens embedded with their places, normalised, and scored against every word.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, words, tokens, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(tokens, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, text):
        place = torch.arange(text.shape[1], device=text.device)
        return self.norm(self.words(text) + self.places(place)) @ self.words.weight.T


BATCH, TOKENS, WORDS, WIDTH = 4, 16, 120, 32


def get_inputs():
    return [torch.randint(0, WORDS, (BATCH, TOKENS))]


def get_init_inputs():
    return [WORDS, TOKENS, WIDTH]
