def define_network(choice, inputs):
    import networks

    if choice == "narrow":
        net = networks.Narrow(inputs)
    elif choice == "wide":
        net = networks.Wide(inputs)
    elif choice == "narrow_old":
        net = networks.NarrowOldVersion(inputs)
    else:
        raise NotImplementedError(f"there is no network {choice}")
    return net
