"""Places the workers of an ostro run on a Ray cluster. `ostro launch ray` starts it: python3 -m ostro_ray.

It knows nothing of training, and it does not decide who is in a run: the coordinator (`ostro coordinator`) does. It
asks Ray for actors, each of which runs one `ostro worker`, and asks again when one is lost."""
