"""What a model does with what it is given: softmaxes of one element, frozen statistics, states, log-determinants."""
