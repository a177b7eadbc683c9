"""provisioning"""
