# %% [markdown]
# # A noisy simulator with integers
#
# A café has three shifts. How many people should work in each, and how many sandwiches should be
# made in the morning? The answer comes from a simulator of one random day. This tutorial goes from
# the first evaluation to an answer that you can trust. Install it beside a clone by `pip install
# "./poem-cma[plot]"`, or from a wheel by `pip install "WHEEL[plot]"`.
#
# ## The simulator
#
# It takes a plan and a seed, and returns the cost of one day: wages, sandwiches, waiting, and
# guests who leave because they would wait too long. All randomness comes from the seed, with one
# stream for guests and another for service times. Two plans with the same seed meet the same
# guests.

# %%
import heapq

import matplotlib.pyplot as plt
import numpy as np

import poem_cma as pc

GUESTS = {"early": 0.5, "noon": 1.6, "late": 0.8}  # in a minute; a shift has 300 minutes


def day(plan, seed):
    guests, service = (np.random.default_rng([seed, stream]) for stream in range(2))
    sandwiches = plan["sandwiches"]
    cost = 2.0 * sandwiches
    for shift, rate in GUESTS.items():
        cost += 75.0 * plan[shift]
        free = [0.0] * plan[shift]  # when each person is free again
        arrivals = np.sort(guests.uniform(0.0, 300.0, guests.poisson(300.0 * rate)))
        hunger = guests.random(len(arrivals)) < 0.3
        for arrival, hungry in zip(arrivals, hunger, strict=True):
            begin, minutes = max(arrival, free[0]), service.exponential(2.5)
            if begin - arrival > 10.0:
                cost += 4.0  # the guest leaves
                continue
            heapq.heapreplace(free, begin + minutes)
            cost += 0.1 * (begin - arrival)
            if hungry and sandwiches > 0:
                sandwiches, cost = sandwiches - 1, cost - 5.0
    return cost


# %% [markdown]
# ## The first evaluations
#
# Before you search, evaluate one plan on several days. This shows that the function works, and how
# large the noise is.

# %%
plan = {"early": 3, "noon": 3, "late": 3, "sandwiches": 100}
costs = [day(plan, seed) for seed in range(20)]
print(f"mean {np.mean(costs):.0f}, standard deviation {np.std(costs, ddof=1):.0f}")

# %% [markdown]
# ## A first search
#
# `pc.Integer` declares a whole number and its bounds. `sample` draws the seed. Points that are
# compared share a seed, so that most of the noise cancels. A small budget is enough to see that
# everything works.

# %%
variables = {
    "early": pc.Integer(1, 10),
    "noon": pc.Integer(1, 10),
    "late": pc.Integer(1, 10),
    "sandwiches": pc.Integer(0, 400),
}


def seeds(rng):
    return int(rng.integers(2**31))


def shown(estimate):
    return f"{estimate.mean:.0f}, 95% interval {estimate.low:.0f} to {estimate.high:.0f}"


first = pc.minimize(day, variables, sample=seeds, budget=150, seed=0)
print(first.x)
print("gain over the start:", shown(first.gain))

# %% [markdown]
# The search started in the middle of each range. `gain` is the improvement over that start,
# measured on fresh common days. The interval is far above zero, so the plan is better than the
# start.
#
# ## A warm start
#
# A result can be the start of another run (a warm start). The new run begins at its point, with
# the scale and the covariance that the first run has learned. Give the variables again as
# `domain`.

# %%
result = pc.minimize(day, first, domain=variables, sample=seeds, budget=1000, seed=1)
print(result.x)
print("cost of a day:", shown(result.value))
print("gain over the first search:", shown(result.gain))
print(result.message)

# %% [markdown]
# ## How sure is this?
#
# `value` is the mean cost of fresh days, which were not used to choose the plan. Four more checks:
#
# **The message** should have no remark beside the reason why the run ended. If it says that the
# run was still improving, use a larger budget.
#
# **The sensitivity** says how much each variable matters. If it is near zero, other values of that
# variable are as good.

# %%
for name, value, share in result.by_variable():
    print(f"{name:10} {value:4.0f}   sensitivity {share:.1f}")

# %% [markdown]
# **Another seed** must lead to nearly the same plan. If it does not, the budget is too small or
# there are several minima.

# %%
again = pc.minimize(day, variables, sample=seeds, budget=1000, seed=2)
print(again.x)

# %% [markdown]
# **The neighbours** must not be better. Compare them with the result on the same new days:

# %%
days = range(10**6, 10**6 + 200)  # no run has seen these seeds


def costs(plan):
    return np.array([day(plan, seed) for seed in days])


steps = {"early": 1, "noon": 1, "late": 1, "sandwiches": 20}
neighbours = {
    f"{name} {sign * step:+d}": result.x | {name: result.x[name] + sign * step}
    for name, step in steps.items()
    for sign in (-1, 1)
}
best = costs(result.x)
worse = np.array([costs(plan) - best for plan in neighbours.values()])
mean, error = worse.mean(axis=1), worse.std(axis=1, ddof=1) / len(days) ** 0.5

figure, axes = plt.subplots(figsize=(6.5, 3), layout="constrained")
axes.errorbar(mean, list(neighbours), xerr=2 * error, fmt="o", capsize=3)
axes.axvline(0.0, color="0.5")
axes.set(xlabel="cost of a day above that of the result (mean ± 2 standard errors)")
figure.savefig("neighbours.png", dpi=110)
print((mean + 2 * error < 0).sum(), "neighbours are clearly better")

# %% [markdown]
# This is a local check: it says nothing about plans far away. If no neighbour is clearly better,
# the message has no remark and two seeds agree, use the plan. Report `value` with its interval as
# its cost.
