"""Optimizers in NumPy f64, from their papers: the other side of check_optimizers.py.

A model is a dict from path to array; `STACKED` says which have an axis of layers in front. A rule is a class with
step(p, g, t, lr, decay, path) -> p for one parameter, t = 1 in the first step; it keeps its state by path.
"""
import numpy as np

KV_HEADS, GROUP, HEAD_DIM, EMBED, MLP = 2, 2, 6, 24, 32


def stacked(path):
    return "/layers/" in path


def decays(path):
    return not any(word in path for word in ("norm", "embedding", "bias"))


def map_matrices(path, x, f, fused=False):
    """f of each matrix [in, out] of a parameter: of each layer, and unless `fused` of each map of a fused weight."""
    layers = x if stacked(path) else x[None]
    out = np.empty_like(layers)
    for i, w in enumerate(layers):
        if "qkv" in path and not fused:
            for part in (slice(0, GROUP), slice(GROUP, GROUP + 1), slice(GROUP + 1, GROUP + 2)):
                y = w[:, :, part]
                out[i][:, :, part] = f(y.reshape(EMBED, -1)).reshape(y.shape)
        elif "gate_up" in path and not fused:
            for part in range(2):
                out[i][:, part] = f(w[:, part])
        elif "/o/" in path:
            out[i] = f(w.reshape(-1, EMBED)).reshape(w.shape)
        else:
            out[i] = f(w.reshape(w.shape[0], -1)).reshape(w.shape)
    return out if stacked(path) else out[0]


def is_hidden_matrix(path):
    return "/layers/" in path and "norm" not in path


class Rule:
    def __init__(self, **options):
        self.kept = {}
        self.__dict__.update(options)

    def of(self, name, path, like):
        return self.kept.setdefault((name, path), np.zeros_like(like))


def descend(p, u, lr, decay):
    return p - lr * (u + decay * p)


def cautious(path, u, g):
    """Liang et al., Cautious Optimizers (2024), per layer."""
    agrees = u * g > 0
    axes = tuple(range(1 if stacked(path) else 0, u.ndim))
    return u * agrees / np.maximum(agrees.mean(axes, keepdims=True), 1e-3)


class ScheduleFree(Rule):
    """AdamW of Defazio et al., The Road Less Scheduled (2024), with r = 0 and weights of squared rates."""
    beta1, beta2, epsilon = 0.9, 0.95, 1e-8

    def step(self, p, g, t, lr, decay, path):
        z, x = self.kept.setdefault(("z", path), p.copy()), self.kept.setdefault(("x", path), p.copy())
        v, sums = self.of("v", path, p), self.of("sum", path, np.zeros(1))
        v[:] = self.beta2 * v + (1 - self.beta2) * g * g
        u = g / (np.sqrt(v / (1 - self.beta2**t)) + self.epsilon)
        z[:] = z - lr * (u + decay * p)
        sums += lr**2
        x[:] = x + (lr**2 / sums if sums > 0 else 1) * (z - x)
        return (1 - self.beta1) * z + self.beta1 * x


class Adam(Rule):
    beta1, beta2, epsilon, careful = 0.9, 0.95, 1e-8, False

    def step(self, p, g, t, lr, decay, path):
        m, v = self.of("m", path, p), self.of("v", path, p)
        m[:] = self.beta1 * m + (1 - self.beta1) * g
        v[:] = self.beta2 * v + (1 - self.beta2) * g * g
        u = m / (1 - self.beta1**t) / (np.sqrt(v / (1 - self.beta2**t)) + self.epsilon)
        return descend(p, cautious(path, u, g) if self.careful else u, lr, decay)


class Lion(Rule):
    """Algorithm 2 of Chen et al., Symbolic Discovery of Optimization Algorithms (2023)."""
    beta1, beta2 = 0.9, 0.95

    def step(self, p, g, t, lr, decay, path):
        m = self.of("m", path, p)
        u = np.sign(self.beta1 * m + (1 - self.beta1) * g)
        m[:] = self.beta2 * m + (1 - self.beta2) * g
        return descend(p, u, lr, decay)


class Sgd(Rule):
    momentum, nesterov = 0.9, False

    def step(self, p, g, t, lr, decay, path):
        m = self.of("m", path, p)
        m[:] = self.momentum * m + g
        return descend(p, g + self.momentum * m if self.nesterov else m, lr, decay)


class Adafactor(Rule):
    """Algorithms 4 to 6 of Shazeer and Stern, Adafactor (2018), with decoupled decay."""
    decay_rate, epsilon, threshold, scaled, smallest = 0.8, 1e-30, 1.0, True, 16

    def step(self, p, g, t, lr, decay, path):
        rest = t**-self.decay_rate
        count = [0]

        def rms(x):
            return np.sqrt(np.mean(x * x))

        def direction(w, d):
            place, square = count[0], d * d + self.epsilon
            count[0] += 1
            if "norm" not in path and min(d.shape) >= self.smallest:
                rows, columns = self.of(("rows", place), path, d[:, 0]), self.of(("columns", place), path, d[0])
                rows[:] = (1 - rest) * rows + rest * square.mean(1)
                columns[:] = (1 - rest) * columns + rest * square.mean(0)
                v = rows[:, None] * columns / rows.mean()
            else:
                v = self.of(("v", place), path, d)
                v[:] = (1 - rest) * v + rest * square
            u = d / np.sqrt(v)
            u = u / max(1.0, rms(u) / self.threshold)
            return u * max(1e-3, rms(w)) if self.scaled else u

        both = np.stack([p, g], 1 if stacked(path) else 0)  # a layer's weights beside its gradient
        u = []
        for w, d in both if stacked(path) else both[None]:
            shape = w.shape
            if "norm" in path:
                u.append(direction(w[:, None], d[:, None])[:, 0])
            else:
                rows = KV_HEADS * GROUP * HEAD_DIM if "/o/" in path else shape[0]
                u.append(direction(w.reshape(rows, -1), d.reshape(rows, -1)).reshape(shape))
        return descend(p, np.stack(u) if stacked(path) else u[0], lr, decay)


class Muon(Rule):
    """Jordan et al., Muon (2024): github.com/KellerJordan/Muon, in f64; AdamW for all but hidden matrices."""
    momentum, nesterov, steps, epsilon, kimi, adam_ratio = 0.95, True, 5, 1e-8, False, 1.0

    def __init__(self, **options):
        super().__init__(**options)
        self.adam = Adam()

    def newton_schulz(self, w):
        x = w.T if w.shape[0] > w.shape[1] else w
        x = x / (np.linalg.norm(x) + self.epsilon)
        for _ in range(self.steps):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        x = x.T if w.shape[0] > w.shape[1] else x
        rows, columns = w.shape
        return x * (0.2 * np.sqrt(max(rows, columns)) if self.kimi else np.sqrt(max(1, columns / rows)))

    def step(self, p, g, t, lr, decay, path):
        if not is_hidden_matrix(path):
            return self.adam.step(p, g, t, lr * self.adam_ratio, decay, path)
        m = self.of("m", path, p)
        m[:] = self.momentum * m + g
        u = g + self.momentum * m if self.nesterov else m
        return descend(p, map_matrices(path, u, self.newton_schulz), lr, decay)


class Factors(Rule):
    """Shampoo's two factors of every matrix and the bases in which they are diagonal, followed by orthogonal iteration
    (Algorithm 4 of Vyas et al., SOAP, 2024) from the identity, with a damping (docs/reference/optimizers.md)."""
    shampoo_beta, frequency, largest, damping = 0.95, 10, 1024, 1e-3

    def iterated(self, factor, basis):
        n = len(factor)
        q, r = np.linalg.qr(factor @ basis + self.damping * np.trace(factor) / n * basis)
        return q * np.where(np.diag(r) < 0, -1.0, 1.0)

    def each(self, path, x, f):
        """f(matrix, [its factors], [its bases]) of every matrix of x, two sides each."""
        place = [0]

        def one(w):
            place[0] += 1
            kept = [[self.kept.setdefault((name, path, place[0], side), make(n)) for side, n in enumerate(w.shape)]
                    for name, make in (("factor", lambda n: np.zeros((n, n))), ("basis", np.eye))]
            return f(w, *kept)
        return map_matrices(path, x, one)

    def follow(self, path, g, t):
        def one(w, factors, bases):
            for side, (factor, basis) in enumerate(zip(factors, bases)):
                if len(basis) <= self.largest:
                    square = w @ w.T if side == 0 else w.T @ w
                    factor[:] = self.shampoo_beta * factor + (1 - self.shampoo_beta) * square
                    if (t - 1) % self.frequency == 0:
                        basis[:] = self.iterated(factor, basis)
            return w
        self.each(path, g, one)


class Soap(Factors):
    """Algorithm 3 of Vyas et al., SOAP (2024): Adam in the eigenbasis of Shampoo's factors."""
    beta1, beta2, epsilon = 0.95, 0.95, 1e-8

    def __init__(self, **options):
        super().__init__(**options)
        self.adam = Adam(beta1=self.beta1, beta2=self.beta2)

    def step(self, p, g, t, lr, decay, path):
        if not is_hidden_matrix(path):
            return self.adam.step(p, g, t, lr, decay, path)
        m, v = self.of("m", path, p), self.of("v", path, p)
        m[:] = self.beta1 * m + (1 - self.beta1) * g

        def there(x):
            return self.each(path, x, lambda w, _, bases: bases[0].T @ w @ bases[1])
        v[:] = self.beta2 * v + (1 - self.beta2) * there(g)**2
        u = there(m) / (1 - self.beta1**t) / (np.sqrt(v / (1 - self.beta2**t)) + self.epsilon)
        u = self.each(path, u, lambda w, _, bases: bases[0] @ w @ bases[1].T)
        self.follow(path, g, t)
        return descend(p, u, lr, decay)


class Shampoo(Factors):
    """Gupta et al., Shampoo (2018), with inverse fourth roots in the bases above, as long as Adam's update (Anil et al.,
    2020)."""
    beta1, beta2, epsilon, ridge, power = 0.9, 0.95, 1e-8, 1e-3, -0.25

    def __init__(self, **options):
        super().__init__(**options)
        self.adam = Adam()

    def root(self, factor, basis):
        if len(basis) > self.largest:
            return basis
        values = np.maximum(np.diag(basis.T @ factor @ basis), 0)
        return (basis * (values + self.ridge * values.mean())**self.power) @ basis.T

    def step(self, p, g, t, lr, decay, path):
        if not is_hidden_matrix(path):
            return self.adam.step(p, g, t, lr, decay, path)
        self.follow(path, g, t)
        m, v = self.of("m", path, p), self.of("v", path, p)
        m[:] = self.beta1 * m + (1 - self.beta1) * g
        v[:] = self.beta2 * v + (1 - self.beta2) * g * g
        adam = m / (1 - self.beta1**t) / (np.sqrt(v / (1 - self.beta2**t)) + self.epsilon)
        u = self.each(path, m, lambda w, factors, bases: self.root(factors[0], bases[0]) @ w @ self.root(
            factors[1], bases[1]))
        axes = tuple(range(1, u.ndim))  # of each layer
        length = [np.sqrt((x * x).sum(axes, keepdims=True)) for x in (adam, u)]
        return descend(p, u * length[0] / length[1], lr, decay)
