import pytest
from azure.cosmos import ContainerProxy
from orders.repository import Orders


@pytest.fixture
def orders(cosmos_container: ContainerProxy) -> Orders:
    """The repository on the container that the test declares."""
    return Orders(cosmos_container)
