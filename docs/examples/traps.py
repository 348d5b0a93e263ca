"""Two kernels that look harmless and are not, on a standard normal; see "What keeps it exact"."""

# [start]
import numpy as np

N_CHAINS, N_ITERATIONS = 100_000, 40
SD = 0.8  # of the surrogate, a normal that is too narrow


def accepted(log_ratio, rng):
    return np.log(rng.random(len(log_ratio))) < log_ratio


def correction(q, proposed):
    """Return the log ratio of a proposal that is reversible on the surrogate V = q^2 / 2 SD^2."""
    return 0.5 * (q**2 - proposed**2) - 0.5 * (q**2 - proposed**2) / SD**2


# [first move]
def stop_at_first_move(rng, n_transitions=None):
    """Random-walk transitions on the surrogate until one moves, or a fixed number of them."""
    q = rng.standard_normal(N_CHAINS)  # exact draws, and so they should stay
    for _ in range(N_ITERATIONS):
        end = q.copy()
        going = np.ones(N_CHAINS, dtype=bool)
        for _ in range(n_transitions or 200):
            step = end + 2.0 * rng.standard_normal(N_CHAINS)
            moves = going & accepted(0.5 * (end**2 - step**2) / SD**2, rng)
            end = np.where(moves, step, end)
            if n_transitions is None:
                going &= ~moves
            if not going.any():
                break
        q = np.where(accepted(correction(q, end), rng), end, q)
    return np.mean(q**2)


# [repairs]
def repaired(rng, patience):
    """Draws from the surrogate; an exact draw instead after so many rejections in a row."""
    q = rng.standard_normal(N_CHAINS)
    rejections = np.zeros(N_CHAINS, dtype=int)
    for _ in range(N_ITERATIONS):
        proposed = SD * rng.standard_normal(N_CHAINS)
        moves = accepted(correction(q, proposed), rng)
        reset = rejections >= patience
        q = np.where(reset, rng.standard_normal(N_CHAINS), np.where(moves, proposed, q))
        rejections = np.where(moves | reset, 0, rejections + 1)
    return np.mean(q**2)


# [results]
rng = np.random.default_rng(7)
print(f"three transitions:      E q^2 = {stop_at_first_move(rng, 3):.3f}")
print(f"until the first move:   E q^2 = {stop_at_first_move(rng):.3f}")
print(f"no repairs:             E q^2 = {repaired(rng, N_ITERATIONS):.3f}")
print(f"after two rejections:   E q^2 = {repaired(rng, 2):.3f}")
# [end]
