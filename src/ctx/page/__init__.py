"""The page: HTML made here, and the HTTP API under `/api/v1`, on a loopback port.

    listening      a loopback socket, and the server on it; `foreground`: for `ctx serve`
    access         who may ask: one-time tokens, sessions, the bearer token; Host, Origin, headers
    opening_files  lead the browser to the page, so that no command line contains a token
    page_app       the routes, and errors as pages or as JSON
    requests       what a view gets: parameters, the form, the memory of the place
    places         the folders that can be looked at
    rendering      templates, and times, bars and links in them; `html_text`: markdown and code
    live_updates   tells an open page that something changed
    views          the views, in the order of the navigation
    *_view         one module for each view: what it shows, and what its forms change
    node_history   the versions of a node; `text_differences`: how two texts differ
    doctor_runs    the doctor, which the process that serves the page passes in
    graph_layout   where the vertices of the graph are drawn, in a process of its own
                   (`layout_process`); `drawn_graph`: the result, `graph_svg`: the picture
    treemap        the heat map of files
    api            the frame of the HTTP API; `openapi` describes it from the types of the handlers
    *_api          the handlers for one kind of thing; `views_api`: what views show, and
                   `api_handlers`: all of them
    endpoints      one request of the API, as its handler describes it

A view reads and changes memory through the operations that the command line uses. It runs in a
thread, opens the memory itself, and returns a value: a page to render or an address to go to. The
page works without JavaScript; the modules in `static` add live updates, keys and the graph.
"""
