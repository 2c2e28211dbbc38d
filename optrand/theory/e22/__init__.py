"""[E22]: label privacy by clusters, with a curator and among peers."""
