"""Jobs on many machines: an input cut once into units, done in any order by any number of workers, then merged."""
