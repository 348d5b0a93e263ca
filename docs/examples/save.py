"""Keep the draws in a file that ArviZ reads."""

import xarray as xr

# [save]
from own_target import run

run.save("coffee.nc")
# [read]
tree = xr.open_datatree("coffee.nc", engine="h5netcdf")
print(tree["posterior"]["rate"].shape, list(tree.children))
# [end]
