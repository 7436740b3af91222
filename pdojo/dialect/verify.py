"""stub"""
def verify_kernel(k): pass
