"""The style of the screen: the terminal's own colours, one line for each heading."""

from textual.theme import Theme

THEME = Theme(
    name="terminal",
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_cyan",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    accent="ansi_green",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    dark=True,
    variables={
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
        "border": "ansi_blue",
        "border-blurred": "ansi_bright_black",
        "block-cursor-foreground": "ansi_default",
        "block-cursor-background": "ansi_default",
        "block-cursor-text-style": "reverse",
        "block-cursor-blurred-foreground": "ansi_default",
        "block-cursor-blurred-background": "ansi_default",
        "block-cursor-blurred-text-style": "bold underline",
        "input-cursor-background": "ansi_default",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-text-style": "reverse",
        "input-selection-background": "ansi_cyan",
        "input-selection-foreground": "ansi_black",
        "footer-key-foreground": "ansi_default",
    },
)
"""The terminal's sixteen colours; the focused item is reversed, so that it is visible without colours."""

CSS = """
#status { height: 1; text-style: reverse; }
#left { width: 3fr; }
#right { width: 2fr; }
TabbedContent { height: 1fr; }
TabbedContent Tabs { height: 1; }
TabbedContent Underline { display: none; }
TabbedContent Tab { padding: 0 1 0 0; }
TabbedContent Tab.-active { text-style: bold underline; }
TabPane { padding: 0; height: 1fr; }
LineView { height: 1fr; scrollbar-size: 1 1; }
#program { height: 2fr; }
#preview { height: 1fr; border-top: solid ansi_blue; border-title-align: left; }
#program:focus, #code:focus, #times:focus, #log:focus { background-tint: ansi_default 0%; }
LineView:focus { scrollbar-color: ansi_green; }
#preview:focus { border-top: solid ansi_green; }
#moves-pane { height: 1fr; }
#count { height: 1; text-style: italic; }
MoveTree { height: 1fr; scrollbar-size: 1 1; }
TracePane { height: 1fr; max-height: 100%; }
#speeds { height: 2; }
ModalScreen { align: center middle; }
.dialog { width: 90%; max-width: 92; height: auto; max-height: 90%; border: solid ansi_blue; padding: 0 1; }
.help { width: 92; max-width: 98%; max-height: 98%; }
Toast { width: 60; max-width: 90%; }
"""
