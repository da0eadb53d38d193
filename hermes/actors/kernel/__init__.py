"""Actor kernel: pykka actors on an asyncio event loop."""
