"""The app, in Gradio: importing this room is light; :mod:`gradio` comes with ``workbench.ui.app``."""
