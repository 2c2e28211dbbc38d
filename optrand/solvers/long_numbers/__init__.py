"""Interior point in numbers of hundreds of bits, for problems of few labels at which floats give out."""
