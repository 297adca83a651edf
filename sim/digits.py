"""A small classifier of scikit-learn's handwritten digits, trained in numpy in a second: what the demonstration runs."""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

__all__ = ["PIXELS", "Digits", "Network", "train"]

PIXELS = 8, 8
_GREYS = 16  # pixels are whole numbers from 0 to 16; divided by it they are still exact in bf16

_EPOCHS, _BATCH, _RATE = 60, 32, 0.01
_NOISE = 0.3  # added to the pixels in training, so that the network does not learn the images by heart
_DECAY = 0.9, 0.999  # of Adam's two running means


@dataclass(frozen=True)
class Digits:
    """Images, one a row, as float32 from 0 to 1, with their labels.

    The 1,797 images are halved, as in scikit-learn's own example, but at random with equal shares of every digit. (The
    example keeps the file's order; networks such as this one are some three points less accurate on that half.)
    """

    train_images: np.ndarray
    test_images: np.ndarray
    train_labels: np.ndarray
    test_labels: np.ndarray

    @classmethod
    def load(cls, seed):
        """The two halves that belong to a seed."""
        images, labels = load_digits(return_X_y=True)
        return cls(*train_test_split((images / _GREYS).astype(np.float32), labels, test_size=0.5, stratify=labels,
                                     random_state=seed))


@dataclass(frozen=True)
class Network:
    """Fully connected layers with rectifiers between them.

    Parameters
    ----------
    weights : list of float32 array [inputs, outputs]
    biases : list of float32 array [outputs]
    """

    weights: list
    biases: list

    @property
    def sizes(self):
        """Neurons of each layer, the inputs first."""
        return [len(self.weights[0]), *map(len, self.biases)]

    def activations(self, images, multiply=np.matmul):
        """Inputs of every layer, and the scores of the last.

        Parameters
        ----------
        images : float32 array [images, inputs]
        multiply : callable
            ``multiply(values, weights)`` gives the matrix product; all else is float32 in numpy.
        """
        values = [images]
        for layer, (weights, bias) in enumerate(zip(self.weights, self.biases), 1):
            sums = multiply(values[-1], weights) + bias
            values.append(sums if layer == len(self.weights) else np.maximum(sums, 0))
        return values

    def classify(self, images, multiply=np.matmul):
        """The digit with the highest score, for each image; parameters as for :meth:`activations`."""
        return self.activations(images, multiply)[-1].argmax(axis=1)


def train(digits, hidden, seed):
    """A :class:`Network` with the given ``hidden`` layer sizes, trained by Adam on the training half."""
    rng = np.random.default_rng(seed)
    images, labels = digits.train_images, digits.train_labels
    sizes = [images.shape[1], *hidden, labels.max() + 1]
    network = Network([(rng.standard_normal(shape) * np.sqrt(2 / shape[0])).astype(np.float32)
                       for shape in zip(sizes, sizes[1:])], [np.zeros(size, np.float32) for size in sizes[1:]])
    parameters = network.weights + network.biases
    means = [np.zeros_like(parameter) for parameter in parameters]
    squares = [np.zeros_like(parameter) for parameter in parameters]
    step = 0
    for epoch in range(_EPOCHS):
        rate = _RATE * (1 - epoch / _EPOCHS)
        order = rng.permutation(len(images))
        for batch in np.split(order, range(_BATCH, len(order), _BATCH)):
            step += 1
            noise = np.float32(_NOISE) * rng.standard_normal((len(batch), sizes[0]), np.float32)
            gradients = _gradients(network, images[batch] + noise, labels[batch])
            for parameter, gradient, mean, square in zip(parameters, gradients, means, squares):
                mean += (1 - _DECAY[0]) * (gradient - mean)
                square += (1 - _DECAY[1]) * (gradient * gradient - square)
                parameter -= (rate * mean / (1 - _DECAY[0] ** step)
                              / (np.sqrt(square / (1 - _DECAY[1] ** step)) + 1e-8))
    return network


def _gradients(network, images, labels):
    """Of the cross entropy, by the weights of every layer and then by the biases."""
    *inputs, scores = network.activations(images)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= 1
    slope = shares / len(labels)
    by_weights, by_biases = [], []
    for values, weights in zip(reversed(inputs), reversed(network.weights)):
        by_weights.insert(0, values.T @ slope)
        by_biases.insert(0, slope.sum(axis=0))
        slope = (slope @ weights.T) * (values > 0)
    return by_weights + by_biases
